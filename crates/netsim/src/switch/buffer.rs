// SPDX-License-Identifier: Apache-2.0
//! The shared buffer: who may have room in it, and who must be told to pause.
//! Promise: bytes taken are given back once; lossless frames within their headroom are never refused; every refusal has
//! its reason.
//! Source: IEEE 802.1Q clause 36 (PFC), Choudhury and Hahne 1998 (dynamic thresholds), Zhu et al. 2015 section 4.

use super::params::{Headroom, PfcParams, PfcThreshold, SwitchParams};
use crate::pause::CLASSES;

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

/// What of the buffer one ingress port holds.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Ingress {
    /// Bytes per class.
    pub(super) bytes: [u64; CLASSES],
    /// Of these, in the headroom (dynamic thresholds only).
    above: [u64; CLASSES],
    /// Headroom of each lossless class.
    headroom: u64,
}

#[derive(Debug)]
pub(super) struct Buffer {
    pfc: Option<PfcParams>,
    lossy_alpha: Option<super::Alpha>,
    size: u64,
    /// All that is not set aside as headroom.
    shared_size: u64,
    used: u64,
    /// Of these, in the shared part.
    shared: u64,
}

impl Buffer {
    pub(super) fn new(params: &SwitchParams) -> Self {
        let size = params.buffer.bytes();
        Buffer { pfc: params.pfc, lossy_alpha: params.lossy_alpha, size, shared_size: size, used: 0, shared: 0 }
    }

    /// Sets a port's headroom for each lossless class. Under dynamic thresholds it is set aside.
    pub(super) fn set_headroom(&mut self, ingress: &mut Ingress, bytes: u64) {
        let Some(pfc) = self.pfc else { return };
        ingress.headroom = bytes;
        if pfc.is_dynamic() {
            let aside = bytes * u64::from(pfc.classes.count_ones());
            self.shared_size = self.shared_size.saturating_sub(aside);
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

    /// What is free of the shared part.
    fn free(&self) -> u64 {
        self.shared_size.saturating_sub(self.shared)
    }

    fn lossless(&self, class: usize) -> Option<&PfcParams> {
        self.pfc.as_ref().filter(|pfc| pfc.covers(class))
    }

    /// Takes room for a frame that came in by `ingress` (`None`: the switch's own) and will wait in a queue which
    /// now holds `queue_bytes`.
    pub(super) fn admit(
        &mut self,
        ingress: Option<&mut Ingress>,
        class: usize,
        queue_bytes: u64,
        bytes: u64,
    ) -> Result<(), Refusal> {
        if self.used + bytes > self.size {
            return Err(Refusal::Buffer);
        }
        let mut none = Ingress::default();
        let (own, ingress) = (ingress.is_none(), ingress.unwrap_or(&mut none));
        match self.lossless(class).filter(|_| !own).map(|pfc| pfc.threshold) {
            Some(PfcThreshold::Static { xoff, .. }) => {
                if ingress.bytes[class] + bytes > xoff.bytes() + ingress.headroom {
                    return Err(Refusal::Headroom);
                }
                self.shared += bytes;
            }
            Some(PfcThreshold::Dynamic { alpha, .. }) => {
                let (free, above) = (self.free(), ingress.above[class]);
                let below = ingress.bytes[class] - above;
                if above == 0 && bytes <= free && below + bytes <= alpha.of(free) {
                    self.shared += bytes;
                } else if above + bytes <= ingress.headroom {
                    ingress.above[class] += bytes;
                } else {
                    return Err(Refusal::Headroom);
                }
            }
            None => {
                let free = self.free();
                if bytes > free {
                    return Err(Refusal::Buffer);
                }
                if self.lossy_alpha.is_some_and(|alpha| queue_bytes + bytes > alpha.of(free)) {
                    return Err(Refusal::Threshold);
                }
                self.shared += bytes;
            }
        }
        self.used += bytes;
        ingress.bytes[class] += bytes;
        Ok(())
    }

    /// A frame has left. What a port holds in its headroom is given back first.
    pub(super) fn release(&mut self, ingress: Option<&mut Ingress>, class: usize, bytes: u64) {
        self.used -= bytes;
        let Some(ingress) = ingress else {
            self.shared -= bytes;
            return;
        };
        ingress.bytes[class] -= bytes;
        let above = ingress.above[class].min(bytes);
        ingress.above[class] -= above;
        self.shared -= bytes - above;
    }

    /// Whether the port must be told to pause.
    pub(super) fn is_over(&self, ingress: &Ingress, class: usize) -> bool {
        self.lossless(class).is_some_and(|pfc| match pfc.threshold {
            PfcThreshold::Static { xoff, .. } => ingress.bytes[class] > xoff.bytes(),
            PfcThreshold::Dynamic { .. } => ingress.above[class] > 0,
        })
    }

    /// Whether the port may go on.
    pub(super) fn is_under(&self, ingress: &Ingress, class: usize) -> bool {
        self.lossless(class).is_some_and(|pfc| match pfc.threshold {
            PfcThreshold::Static { xon, .. } => ingress.bytes[class] <= xon.bytes(),
            PfcThreshold::Dynamic { alpha, hysteresis } => {
                let bytes = ingress.bytes[class];
                let below = bytes == 0 || bytes + hysteresis.bytes() <= alpha.of(self.free());
                ingress.above[class] == 0 && below
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::Alpha;
    use super::*;
    use crate::units::ByteSize;

    const LOSSLESS: usize = 3;
    const LOSSY: usize = 0;

    fn dynamic(alpha: f64, buffer: u64, headroom: u64) -> SwitchParams {
        let threshold = PfcThreshold::Dynamic { alpha: Alpha::new(alpha).unwrap(), hysteresis: ByteSize(1_000) };
        let pfc = PfcParams { classes: 1 << LOSSLESS, threshold, headroom: Headroom::Fixed(ByteSize(headroom)) };
        SwitchParams { buffer: ByteSize(buffer), pfc: Some(pfc), lossy_alpha: Alpha::new(alpha), ..Default::default() }
    }

    fn with_ports(params: &SwitchParams, ports: usize, headroom: u64) -> (Buffer, Vec<Ingress>) {
        let (mut buffer, mut ports) = (Buffer::new(params), vec![Ingress::default(); ports]);
        ports.iter_mut().for_each(|port| buffer.set_headroom(port, headroom));
        (buffer, ports)
    }

    #[test]
    fn one_lossy_queue_alone_stops_at_alpha_of_what_is_left() {
        // q = alpha (B - q), so q = B alpha / (1 + alpha): the fixed point of Choudhury and Hahne, equation 2
        for (alpha, share) in [(0.5, 1.0 / 3.0), (1.0, 0.5), (2.0, 2.0 / 3.0), (8.0, 8.0 / 9.0)] {
            let (mut buffer, mut ports) = with_ports(&dynamic(alpha, 1_000_000, 0), 1, 0);
            let mut queue = 0;
            while buffer.admit(Some(&mut ports[0]), LOSSY, queue, 100).is_ok() {
                queue += 100;
            }
            assert!((queue as f64 - share * 1e6).abs() <= 100.0 * (1.0 + alpha), "alpha {alpha}: {queue}");
            assert_eq!(buffer.admit(Some(&mut ports[0]), LOSSY, queue, 100), Err(Refusal::Threshold));
            assert_eq!(buffer.admit(Some(&mut ports[0]), LOSSY, 0, 100), Ok(()), "another queue has room");
        }
    }

    #[test]
    fn n_lossless_ports_share_alike_and_then_fill_their_headroom_only() {
        // n queues: q = alpha B / (1 + n alpha) each
        let (n, size, headroom) = (4, 1_000_000, 20_000);
        let (mut buffer, mut ports) = with_ports(&dynamic(1.0, size, headroom), n, headroom);
        assert_eq!(buffer.shared_size(), size - 4 * headroom);
        let mut full = vec![0; n];
        for _ in 0..5_000 {
            for (port, full) in ports.iter_mut().zip(&mut full) {
                if *full == 0 && buffer.admit(Some(port), LOSSLESS, 0, 500).is_ok() && buffer.is_over(port, LOSSLESS) {
                    *full = port.bytes[LOSSLESS];
                }
            }
        }
        let fair = (size - 4 * headroom) as f64 / 5.0;
        assert!(full.iter().all(|bytes| (*bytes as f64 - fair).abs() < 2_500.0), "{full:?} near {fair}");
        let port = &mut ports[0];
        let more = (0..100).take_while(|_| buffer.admit(Some(port), LOSSLESS, 0, 500).is_ok()).count();
        assert_eq!(more as u64 + 1, headroom / 500, "the frame that crossed took headroom as well");
        assert_eq!(buffer.admit(Some(port), LOSSLESS, 0, 500), Err(Refusal::Headroom));
    }

    #[test]
    fn a_port_goes_on_when_it_is_below_what_is_free_then_by_the_hysteresis() {
        let (mut buffer, mut ports) = with_ports(&dynamic(1.0, 11_000, 1_000), 1, 1_000);
        let port = &mut ports[0];
        (0..5).for_each(|_| assert_eq!(buffer.admit(Some(port), LOSSLESS, 0, 1_000), Ok(())));
        assert!(!buffer.is_over(port, LOSSLESS), "5000 of 10000 - 5000");
        assert_eq!(buffer.admit(Some(port), LOSSLESS, 0, 1_000), Ok(()));
        assert!(buffer.is_over(port, LOSSLESS));
        buffer.release(Some(port), LOSSLESS, 1_000);
        assert!(!buffer.is_over(port, LOSSLESS) && !buffer.is_under(port, LOSSLESS), "5000 + 1000 > 5000");
        buffer.release(Some(port), LOSSLESS, 1_000);
        assert!(buffer.is_under(port, LOSSLESS), "4000 + 1000 <= 6000");
    }
}
