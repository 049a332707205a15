// SPDX-License-Identifier: Apache-2.0
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| penstock_fuzz::rdma_cm::run(data));
