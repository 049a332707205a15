// SPDX-License-Identifier: Apache-2.0
//! Passes a table to Python: record batches with `__arrow_c_stream__`.
//! Promise: the consumer gets the original buffers; they live until both sides have released them.
//! Source: Arrow PyCapsule interface, `__arrow_c_stream__`.

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{RecordBatch, RecordBatchIterator};
use arrow_schema::{ArrowError, SchemaRef};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

/// Record batches of one schema; `pyarrow.table(stream)` and everyone else who knows the protocol reads it.
#[pyclass(frozen)]
pub struct Stream {
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
}

impl Stream {
    /// A stream of at least one batch, which defines the columns.
    pub fn new(batches: Vec<RecordBatch>) -> Option<Self> {
        Some(Stream { schema: batches.first()?.schema(), batches })
    }
}

#[pymethods]
impl Stream {
    /// The batches as an Arrow C stream. The schema that the consumer would like is not heeded, as the protocol allows.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        drop(requested_schema);
        let batches: Vec<Result<RecordBatch, ArrowError>> = self.batches.iter().cloned().map(Ok).collect();
        let reader = RecordBatchIterator::new(batches, self.schema.clone());
        PyCapsule::new(py, FFI_ArrowArrayStream::new(Box::new(reader)), Some(c"arrow_array_stream".to_owned()))
    }

    fn __len__(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }
}
