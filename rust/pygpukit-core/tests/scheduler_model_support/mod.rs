//! What the task table is tried with, the model that it is compared with, and the two side by side.

pub mod model;
pub mod run;
pub mod strategies;
