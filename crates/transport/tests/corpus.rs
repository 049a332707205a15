// SPDX-License-Identifier: Apache-2.0
//! Runs the bodies of the fuzz targets on the inputs of `fuzz/corpus`.

#[path = "../../../fuzz/src/cm.rs"]
mod cm;
#[path = "../../../fuzz/src/corpus.rs"]
mod corpus;
#[path = "../../../fuzz/src/input.rs"]
#[allow(dead_code, reason = "each target takes its own part")]
mod input;
#[path = "../../../fuzz/src/rdma_cm.rs"]
mod rdma_cm;
#[path = "../../../fuzz/src/requester.rs"]
mod requester;
#[path = "../../../fuzz/src/responder.rs"]
mod responder;
#[path = "../../../fuzz/src/tcp_stream.rs"]
mod tcp_stream;

#[test]
fn the_corpus_of_responder_breaks_no_promise() {
    corpus::replay("responder", responder::run);
}

#[test]
fn the_corpus_of_requester_breaks_no_promise() {
    corpus::replay("requester", requester::run);
}

#[test]
fn the_corpus_of_cm_breaks_no_promise() {
    corpus::replay("cm", cm::run);
}

#[test]
fn the_corpus_of_rdma_cm_breaks_no_promise() {
    corpus::replay("rdma_cm", rdma_cm::run);
}

#[test]
fn the_corpus_of_tcp_stream_breaks_no_promise() {
    corpus::replay("tcp_stream", tcp_stream::run);
}
