// SPDX-License-Identifier: Apache-2.0
//! The shared buffer: decides which frames are admitted, and which senders must pause.
//! Promise: bytes are returned exactly once; lossless frames within their headroom are never refused; every refusal has
//! a reason.
//! Source: IEEE 802.1Q clause 36 (PFC), Choudhury and Hahne 1998 (dynamic thresholds), Zhu et al. 2015 section 4.

use super::params::{Alpha, Headroom, PfcParams, PfcThreshold, SwitchParams};

/// Where a frame that found room leaves its ingress port, or its queue, against the threshold of PFC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Admitted {
    Below,
    /// The sender must pause.
    AboveThreshold,
}

impl Admitted {
    fn above_if(is_above: bool) -> Self {
        match is_above {
            true => Admitted::AboveThreshold,
            false => Admitted::Below,
        }
    }
}

/// Why a frame found no room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refusal {
    /// The buffer, or its shared part, is full.
    Buffer,
    /// A lossy queue has reached its dynamic threshold.
    Threshold,
    /// The headroom of a lossless class and port is spent.
    Headroom,
}

/// The buffer space held by one class of one ingress port.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Share {
    pub(super) bytes: u64,
    /// Octets in the headroom (dynamic thresholds only).
    above: u64,
    /// 0 for lossy classes.
    headroom: u64,
}

#[derive(Debug)]
pub(super) struct Buffer {
    pfc: Option<PfcParams>,
    /// The lossless classes, bit i for class i.
    lossless: u8,
    lossy_alpha: Option<Alpha>,
    size: u64,
    /// All that is not set aside as headroom.
    shared_size: u64,
    used: u64,
    /// Octets in the shared part.
    shared: u64,
}

impl Buffer {
    pub(super) fn new(params: &SwitchParams) -> Self {
        let (size, pfc) = (params.buffer.bytes(), params.pfc);
        let lossless = pfc.map_or(0, |pfc| pfc.classes);
        Buffer { pfc, lossless, lossy_alpha: params.lossy_alpha, size, shared_size: size, used: 0, shared: 0 }
    }

    /// Sets the headroom of a port's class, if it is lossless. Under dynamic thresholds it is set aside.
    pub(super) fn set_headroom(&mut self, share: &mut Share, class: usize, bytes: u64) {
        if self.is_lossless(class) {
            share.headroom = bytes;
            if self.pfc.is_some_and(|pfc| matches!(pfc.threshold, PfcThreshold::Dynamic { .. })) {
                self.shared_size = self.shared_size.saturating_sub(bytes);
            }
        }
    }

    /// The headroom that the parameters give to a port, `of_link` being that of its own link.
    pub(super) fn headroom(&self, of_link: impl FnOnce(u16) -> u64) -> u64 {
        match self.pfc.map(|pfc| pfc.headroom) {
            None => 0,
            Some(Headroom::Fixed(bytes)) => bytes.bytes(),
            Some(Headroom::OfLink { mtu }) => of_link(mtu),
        }
    }

    pub(super) fn used(&self) -> u64 {
        self.used
    }

    pub(super) fn shared_size(&self) -> u64 {
        self.shared_size
    }

    /// The free bytes of the shared part.
    fn free(&self) -> u64 {
        self.shared_size.saturating_sub(self.shared)
    }

    fn is_lossless(&self, class: usize) -> bool {
        self.lossless >> class & 1 == 1
    }

    /// Takes room for a frame that came in by a port and will wait in a queue which now holds `queue_bytes`.
    pub(super) fn admit(
        &mut self,
        share: &mut Share,
        class: usize,
        queue_bytes: u64,
        bytes: u64,
    ) -> Result<Admitted, Refusal> {
        if self.used + bytes > self.size {
            return Err(Refusal::Buffer);
        }
        let level = match &self.pfc {
            Some(pfc) if self.is_lossless(class) => match pfc.threshold {
                PfcThreshold::Static { xoff, .. } => {
                    let with = share.bytes + bytes;
                    if with > xoff.bytes() + share.headroom {
                        return Err(Refusal::Headroom);
                    }
                    self.shared += bytes;
                    Admitted::above_if(with > xoff.bytes())
                }
                PfcThreshold::Dynamic { alpha, .. } => self.admit_dynamic(share, alpha, bytes)?,
                PfcThreshold::Queue { xoff, .. } => {
                    self.shared += bytes;
                    Admitted::above_if(queue_bytes + bytes > xoff.bytes())
                }
            },
            _ => {
                self.admit_lossy(queue_bytes, bytes)?;
                Admitted::Below
            }
        };
        self.used += bytes;
        share.bytes += bytes;
        Ok(level)
    }

    fn admit_dynamic(&mut self, share: &mut Share, alpha: Alpha, bytes: u64) -> Result<Admitted, Refusal> {
        let (free, below) = (self.free(), share.bytes - share.above);
        if share.above == 0 && bytes <= free && below + bytes <= alpha.of(free) {
            self.shared += bytes;
            return Ok(Admitted::Below);
        }
        if share.above + bytes > share.headroom {
            return Err(Refusal::Headroom);
        }
        share.above += bytes;
        Ok(Admitted::AboveThreshold)
    }

    fn admit_lossy(&mut self, queue_bytes: u64, bytes: u64) -> Result<(), Refusal> {
        let free = self.free();
        if bytes > free {
            return Err(Refusal::Buffer);
        }
        if self.lossy_alpha.is_some_and(|alpha| queue_bytes + bytes > alpha.of(free)) {
            return Err(Refusal::Threshold);
        }
        self.shared += bytes;
        Ok(())
    }

    /// A frame has left. Bytes in a port's headroom are returned first.
    pub(super) fn release(&mut self, share: &mut Share, bytes: u64) {
        self.used -= bytes;
        share.bytes -= bytes;
        let above = share.above.min(bytes);
        share.above -= above;
        self.shared -= bytes - above;
    }

    /// Whether a port that pauses a lossless class may let it go on.
    pub(super) fn is_under(&self, share: &Share) -> bool {
        self.pfc.is_some_and(|pfc| match pfc.threshold {
            PfcThreshold::Static { xon, .. } => share.bytes <= xon.bytes(),
            PfcThreshold::Dynamic { alpha, hysteresis } => {
                let below = share.bytes == 0 || share.bytes + hysteresis.bytes() <= alpha.of(self.free());
                share.above == 0 && below
            }
            // `QueuePauses` knows
            PfcThreshold::Queue { .. } => false,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::params::PauseFrame;
    use super::*;
    use crate::units::ByteSize;

    const LOSSLESS: usize = 3;
    const LOSSY: usize = 0;

    fn dynamic(alpha: f64, size: u64, headroom: u64, ports: usize) -> (Buffer, Vec<Share>) {
        let alpha = Alpha::new(alpha).unwrap();
        let threshold = PfcThreshold::Dynamic { alpha, hysteresis: ByteSize(1_000) };
        let pfc = PfcParams {
            classes: 1 << LOSSLESS,
            threshold,
            headroom: Headroom::Fixed(ByteSize(headroom)),
            frame: PauseFrame::Pfc,
        };
        let params = SwitchParams {
            buffer: ByteSize(size),
            pfc: Some(pfc),
            lossy_alpha: Some(alpha),
            ..SwitchParams::default()
        };
        let (mut buffer, mut shares) = (Buffer::new(&params), vec![Share::default(); ports]);
        shares.iter_mut().for_each(|share| buffer.set_headroom(share, LOSSLESS, headroom));
        (buffer, shares)
    }

    #[test]
    fn one_lossy_queue_alone_stops_at_alpha_of_what_is_left() {
        // q = alpha (B - q), so q = B alpha / (1 + alpha): the fixed point of Choudhury and Hahne
        for (alpha, part) in [(0.5, 1.0 / 3.0), (1.0, 0.5), (2.0, 2.0 / 3.0), (8.0, 8.0 / 9.0)] {
            let (mut buffer, mut shares) = dynamic(alpha, 1_000_000, 0, 1);
            let mut queue = 0;
            while buffer.admit(&mut shares[0], LOSSY, queue, 100) == Ok(Admitted::Below) {
                queue += 100;
            }
            assert!((queue as f64 - part * 1e6).abs() <= 100.0 * (1.0 + alpha), "alpha {alpha}: {queue}");
            assert_eq!(buffer.admit(&mut shares[0], LOSSY, queue, 100), Err(Refusal::Threshold));
            assert_eq!(buffer.admit(&mut shares[0], LOSSY, 0, 100), Ok(Admitted::Below), "another queue has room");
        }
    }

    #[test]
    fn n_lossless_ports_share_alike_and_then_fill_their_headroom_only() {
        // n ports: q = alpha (B - n q), so q = alpha B / (1 + n alpha) each
        let (n, size, headroom) = (4, 1_000_000, 20_000);
        let (mut buffer, mut shares) = dynamic(1.0, size, headroom, n);
        assert_eq!(buffer.shared_size(), size - 4 * headroom);
        let mut full = vec![0; n];
        for (port, _) in (0..n).cycle().zip(0..20_000) {
            if full[port] == 0 && buffer.admit(&mut shares[port], LOSSLESS, 0, 500) == Ok(Admitted::AboveThreshold) {
                full[port] = shares[port].bytes;
            }
        }
        let fair = (size - 4 * headroom) as f64 / 5.0;
        assert!(full.iter().all(|bytes| (*bytes as f64 - fair).abs() < 2_500.0), "{full:?} near {fair}");
        let more = (0..100).take_while(|_| buffer.admit(&mut shares[0], LOSSLESS, 0, 500).is_ok()).count();
        assert_eq!(more as u64 + 1, headroom / 500, "the frame that crossed took headroom as well");
        assert_eq!(buffer.admit(&mut shares[0], LOSSLESS, 0, 500), Err(Refusal::Headroom));
    }

    #[test]
    fn a_port_goes_on_when_it_is_below_what_is_free_then_by_the_hysteresis() {
        let (mut buffer, mut shares) = dynamic(1.0, 11_000, 1_000, 1);
        let share = &mut shares[0];
        (0..5).for_each(|_| {
            assert_eq!(buffer.admit(share, LOSSLESS, 0, 1_000), Ok(Admitted::Below), "5000 of 10000 - 5000")
        });
        assert_eq!(buffer.admit(share, LOSSLESS, 0, 1_000), Ok(Admitted::AboveThreshold));
        buffer.release(share, 1_000);
        assert!(!buffer.is_under(share), "5000 + 1000 > 5000");
        buffer.release(share, 1_000);
        assert!(buffer.is_under(share), "4000 + 1000 <= 6000");
    }
}
