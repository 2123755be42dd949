//! Prints what admission, pick-next and finish cost with many tenants: `cargo run --release --example policy_speed`.

use pygpukit_core::scheduler::speed::{in_a_row, one_by_one};

const ROUNDS: usize = 9;
const CALLS: usize = 20_000;
const TASKS: usize = 10_000;

fn main() {
    println!("ns a call, median of {ROUNDS} rounds; {TASKS} submissions into a new table in ms");
    println!("tenants  submit p50    p99  next p50    p99  finish p50  {TASKS} ms");
    for tenants in [0, 1, 1000] {
        let rounds: Vec<_> = (0..ROUNDS).map(|_| one_by_one(tenants, CALLS)).collect();
        let figures = rounds
            .iter()
            .map(|r| [r.submit_p50, r.submit_p99, r.next_p50, r.next_p99, r.finish_p50]);
        let figures: Vec<[f64; 5]> = figures.collect();
        let [submit, submit_p99, next, next_p99, finish] =
            std::array::from_fn(|column| median(figures.iter().map(|round| round[column])));
        let ms = median((0..ROUNDS).map(|_| in_a_row(tenants, TASKS) as f64 / 1e6));
        println!("{tenants:7}  {submit:10.0} {submit_p99:6.0}  {next:8.0} {next_p99:6.0}  {finish:10.0}  {ms:8.2}");
    }
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
