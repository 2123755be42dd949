//! Python's view of slicing: the PTX rewriter and the plan of a launch.

use pygpukit_core::slicing as core;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::errors::raise_with;
use crate::text::{OwnText, Text};

type Extent = (u32, u32, u32);

/// Names of the reasons for which a kernel is not sliced.
fn reasons() -> Vec<&'static str> {
    core::Reason::ALL.iter().map(|reason| reason.name()).collect()
}

/// The PTX module with `entry` alone, which takes its place in the whole grid from one more parameter of 24 bytes.
#[pyfunction]
#[pyo3(signature = (ptx, entry, host_variables=Vec::new(), newest=None))]
pub fn slice_ptx(
    py: Python<'_>,
    ptx: Text<'_>,
    entry: Text<'_>,
    host_variables: Vec<OwnText>,
    newest: Option<(u32, u32)>,
) -> PyResult<String> {
    let options = core::Options {
        host_variables: host_variables.into_iter().map(|name| name.0).collect(),
        newest,
    };
    let result = py.detach(|| core::rewrite(&ptx, &entry, &options));
    result.map_err(|error| {
        let fields = (
            error.to_string(),
            error.reason.name(),
            error.function.as_str(),
            error.line,
        );
        raise_with(py, "UnsliceableError", fields)
    })
}

/// The sub-grids of a grid, each of at most `blocks` blocks, as ((first x, y, z), (extent x, y, z)), in order.
#[pyfunction]
pub fn slice_plan(grid: Extent, blocks: u64) -> PyResult<Vec<(Extent, Extent)>> {
    const MAX_SLICES: u64 = 1 << 20;
    if blocks == 0 || grid.0 == 0 || grid.1 == 0 || grid.2 == 0 {
        return Err(PyValueError::new_err(format!(
            "grid is {grid:?} and blocks is {blocks}; each must be at least 1"
        )));
    }
    let plan = core::Plan::new([grid.0, grid.1, grid.2], blocks);
    if plan.total() / blocks > MAX_SLICES {
        return Err(PyValueError::new_err(format!(
            "blocks is {blocks}, which makes more than {MAX_SLICES} slices of the {} blocks of grid {grid:?}; \
             give more blocks a slice",
            plan.total()
        )));
    }
    let triple = |n: [u32; 3]| (n[0], n[1], n[2]);
    Ok(plan.map(|part| (triple(part.first), triple(part.extent))).collect())
}

pub fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("SLICE_REASONS", reasons())?;
    module.add_function(wrap_pyfunction!(slice_ptx, module)?)?;
    module.add_function(wrap_pyfunction!(slice_plan, module)?)
}
