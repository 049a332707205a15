// SPDX-License-Identifier: Apache-2.0
//! The kernel's connection manager, by librdmacm: a listener, and the connections that peers request there. Queue pairs are
//! the caller's: it moves them through their states, and the kernel exchanges the messages.
//! Promise: each event is acknowledged once it was read, so that nothing that is dropped waits for one.
//! Source: rdma_cm(7), rdma_accept(3), rdma_init_qp_attr(3); the library is loaded at run time by `rdma-mummy-sys`.

use std::ffi::{c_int, c_void};
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::ptr::{self, NonNull};
use std::sync::Arc;

use rdma_mummy_sys as ffi;

/// Requests that wait in the kernel.
const BACKLOG: c_int = 128;
/// Peers retry after an RNR NAK without end (IBTA 9.7.5.2.8).
const RNR_RETRY: u8 = 7;

/// Whether librdmacm is on this machine and can be loaded. Where it is not, all else here fails.
pub fn connection_library_is_there() -> bool {
    // SAFETY: a constant name; the handle is kept, as the library is by `rdma-mummy-sys`.
    !cfg!(target_feature = "crt-static")
        && unsafe { !libc::dlopen(c"librdmacm.so.1".as_ptr(), libc::RTLD_LAZY).is_null() }
}

/// Where events come.
#[derive(Debug)]
struct Channel(NonNull<ffi::rdma_event_channel>);

// SAFETY: librdmacm may be called from any thread (rdma_cm(7)); we add no state of our own.
unsafe impl Send for Channel {}
// SAFETY: as above.
unsafe impl Sync for Channel {}

impl Drop for Channel {
    fn drop(&mut self) {
        // SAFETY: made once, destroyed once; all identifiers hold an `Arc` and are gone, all events are acknowledged.
        unsafe { ffi::rdma_destroy_event_channel(self.0.as_ptr()) };
    }
}

/// A listener or a connection.
#[derive(Debug)]
pub struct Identifier {
    raw: NonNull<ffi::rdma_cm_id>,
    _channel: Arc<Channel>,
}

// SAFETY: as for `Channel`.
unsafe impl Send for Identifier {}
// SAFETY: as for `Channel`.
unsafe impl Sync for Identifier {}

/// What a requested connection sets for our queue pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attributes {
    /// PSN of the peer's first packet, and of ours.
    pub receive_psn: u32,
    pub send_psn: u32,
    /// `enum ibv_mtu`.
    pub mtu_code: u32,
    /// Code of the peer's ACK timeout.
    pub ack_timeout: u8,
}

/// A peer's request for a connection.
#[derive(Debug)]
pub struct Request {
    pub id: Identifier,
    pub from: Ipv4Addr,
    pub qpn: u32,
    /// READs that the peer takes at a time.
    pub reads: u8,
    pub private: Vec<u8>,
}

/// What has happened; connections by [`Identifier::key`].
#[derive(Debug)]
pub enum ConnectionEvent {
    Requested(Request),
    Established(usize),
    Disconnected(usize),
    /// The peer has rejected our answer, or does not answer.
    Failed(usize),
}

impl Identifier {
    /// A number that no other one has.
    pub fn key(&self) -> usize {
        self.raw.as_ptr() as usize
    }

    /// What our queue pair needs.
    ///
    /// # Errors
    /// The kernel's: the connection is over.
    pub fn attributes(&self) -> io::Result<Attributes> {
        let to_receive = self.attributes_in(ffi::ibv_qp_state::IBV_QPS_RTR)?;
        let to_send = self.attributes_in(ffi::ibv_qp_state::IBV_QPS_RTS)?;
        Ok(Attributes {
            receive_psn: to_receive.rq_psn,
            send_psn: to_send.sq_psn,
            mtu_code: to_receive.path_mtu,
            ack_timeout: to_send.timeout,
        })
    }

    fn attributes_in(&self, state: ffi::ibv_qp_state::Type) -> io::Result<ffi::ibv_qp_attr> {
        // SAFETY: a plain C struct of integers, in which all zeros is a value.
        let mut attr: ffi::ibv_qp_attr = unsafe { std::mem::zeroed() };
        attr.qp_state = state;
        let mut mask = 0;
        // SAFETY: the identifier is valid; both places are large enough.
        done(unsafe { ffi::rdma_init_qp_attr(self.raw.as_ptr(), &mut attr, &mut mask) })?;
        Ok(attr)
    }

    /// Accepts with a queue pair of this process, which takes what the peer sends, and has `reads` outstanding.
    ///
    /// # Errors
    /// The kernel's: the request is over, or the device has fewer READs.
    pub fn accept(&self, qpn: u32, reads: u8, private: &[u8]) -> io::Result<()> {
        let mut parameters = ffi::rdma_conn_param {
            private_data: private.as_ptr().cast::<c_void>(),
            private_data_len: u8::try_from(private.len()).map_err(io::Error::other)?,
            responder_resources: 0,
            initiator_depth: reads,
            flow_control: 1,
            retry_count: 0,
            rnr_retry_count: RNR_RETRY,
            srq: 0,
            qp_num: qpn,
        };
        // SAFETY: the identifier is valid; the parameters and what they name live until the call returns.
        done(unsafe { ffi::rdma_accept(self.raw.as_ptr(), &mut parameters) })
    }

    /// Rejects a request.
    pub fn reject(&self) {
        // SAFETY: the identifier is valid; there is no private data. One that is over needs no answer.
        unsafe { ffi::rdma_reject(self.raw.as_ptr(), ptr::null(), 0) };
    }

    /// Ends a connection, or answers its end.
    pub fn disconnect(&self) {
        // SAFETY: the identifier is valid. A connection that is over needs no message.
        unsafe { ffi::rdma_disconnect(self.raw.as_ptr()) };
    }
}

impl Drop for Identifier {
    fn drop(&mut self) {
        // SAFETY: made once, destroyed once; it has no queue pair, and all its events are acknowledged.
        unsafe { ffi::rdma_destroy_id(self.raw.as_ptr()) };
    }
}

/// Listens at a port of an address.
#[derive(Debug)]
pub struct Listener {
    id: Identifier,
    channel: Arc<Channel>,
}

impl Listener {
    /// Listens at a port of TCP's space.
    ///
    /// # Errors
    /// The kernel has no such connection manager, or it may not be used; the port is in use.
    pub fn open(at: SocketAddrV4) -> io::Result<Listener> {
        // SAFETY: no arguments.
        let channel = NonNull::new(unsafe { ffi::rdma_create_event_channel() }).ok_or_else(io::Error::last_os_error)?;
        let channel = Arc::new(Channel(channel));
        // SAFETY: the channel is valid until it is dropped, and its descriptor is open as long.
        let file = unsafe { channel.0.as_ref() }.fd;
        // SAFETY: of an open descriptor.
        done(unsafe { libc::fcntl(file, libc::F_SETFL, libc::O_NONBLOCK) })?;
        let mut raw = ptr::null_mut();
        let space = ffi::rdma_port_space::RDMA_PS_TCP;
        // SAFETY: the channel is valid; `raw` is a place for the identifier.
        done(unsafe { ffi::rdma_create_id(channel.0.as_ptr(), &mut raw, ptr::null_mut(), space) })?;
        let raw = NonNull::new(raw).ok_or_else(io::Error::last_os_error)?;
        let id = Identifier { raw, _channel: channel.clone() };
        // SAFETY: a plain C struct of integers.
        let mut address: libc::sockaddr_in = unsafe { std::mem::zeroed() };
        address.sin_family = libc::AF_INET as libc::sa_family_t;
        address.sin_port = at.port().to_be();
        address.sin_addr.s_addr = at.ip().to_bits().to_be();
        // SAFETY: the identifier is valid; the address, whose family gives its length, lives until the call returns.
        done(unsafe { ffi::rdma_bind_addr(id.raw.as_ptr(), ptr::from_mut(&mut address).cast()) })?;
        // SAFETY: the identifier is valid.
        done(unsafe { ffi::rdma_listen(id.raw.as_ptr(), BACKLOG) })?;
        Ok(Listener { id, channel })
    }

    /// The next event; none if nothing has happened.
    ///
    /// # Errors
    /// The kernel's.
    pub fn poll(&self) -> io::Result<Option<ConnectionEvent>> {
        loop {
            let mut event = ptr::null_mut();
            // SAFETY: the channel is valid; `event` is a place for the pointer.
            match done(unsafe { ffi::rdma_get_cm_event(self.channel.0.as_ptr(), &mut event) }) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                got => got?,
            }
            let event = NonNull::new(event).ok_or_else(io::Error::last_os_error)?;
            // SAFETY: valid until it is acknowledged, which is after the last use.
            let read = self.read(unsafe { event.as_ref() });
            // SAFETY: from rdma_get_cm_event, acknowledged once. The identifier of a request that is dropped from here on
            // does not wait for it.
            done(unsafe { ffi::rdma_ack_cm_event(event.as_ptr()) })?;
            if read.is_some() {
                return Ok(read);
            }
        }
    }

    fn read(&self, event: &ffi::rdma_cm_event) -> Option<ConnectionEvent> {
        use ffi::rdma_cm_event_type as kind;
        let id = NonNull::new(event.id)?;
        let key = id.as_ptr() as usize;
        match event.event {
            kind::RDMA_CM_EVENT_CONNECT_REQUEST => {
                let id = Identifier { raw: id, _channel: self.channel.clone() };
                // SAFETY: the event is that of a connected service, whose variant of the union this is.
                let conn = unsafe { event.param.conn };
                let private = match conn.private_data.is_null() {
                    true => Vec::new(),
                    // SAFETY: so many bytes of the event, which is not yet acknowledged.
                    false => unsafe {
                        std::slice::from_raw_parts(conn.private_data.cast::<u8>(), conn.private_data_len.into())
                    }
                    .to_vec(),
                };
                // SAFETY: the peer's address has the family of the address that is listened at, IPv4.
                let from = unsafe { id.raw.as_ref().route.addr.dst_addr_union.dst_sin };
                let from = Ipv4Addr::from_bits(u32::from_be(from.sin_addr.s_addr));
                Some(ConnectionEvent::Requested(Request {
                    id,
                    from,
                    qpn: conn.qp_num,
                    // In an event these are our end's: at most as many as the peer takes.
                    reads: conn.initiator_depth,
                    private,
                }))
            }
            kind::RDMA_CM_EVENT_ESTABLISHED => Some(ConnectionEvent::Established(key)),
            kind::RDMA_CM_EVENT_DISCONNECTED => Some(ConnectionEvent::Disconnected(key)),
            kind::RDMA_CM_EVENT_CONNECT_ERROR
            | kind::RDMA_CM_EVENT_UNREACHABLE
            | kind::RDMA_CM_EVENT_REJECTED
            | kind::RDMA_CM_EVENT_DEVICE_REMOVAL
                if key != self.id.key() =>
            {
                Some(ConnectionEvent::Failed(key))
            }
            _ => None,
        }
    }
}

/// Converts results of librdmacm: 0 or more, or -1 and `errno`.
fn done(result: c_int) -> io::Result<()> {
    match result {
        0.. => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
