//! A schedule of random tasks over simulated devices, its time and what came of it: `cargo run --release --example scheduler_devices -- 64
//! 1000000`. It stops at the first promise that is broken.

#[path = "../tests/scheduler_devices_support/schedule.rs"]
mod schedule;

use std::time::Instant;

fn main() {
    let mut words = std::env::args().skip(1).map(|word| word.parse().expect("a number"));
    let (devices, tasks) = (words.next().unwrap_or(64), words.next().unwrap_or(1_000_000));
    let start = Instant::now();
    let out = schedule::run(devices, tasks, 0x9e37_79b9_7f4a_7c15, 10_000);
    let seconds = start.elapsed().as_secs_f64();
    let (low, high) = (
        out.by_device.iter().min().unwrap_or(&0),
        out.by_device.iter().max().unwrap_or(&0),
    );
    println!("{{");
    println!("  \"devices\": {devices}, \"tasks\": {tasks}, \"seconds\": {seconds:.1},");
    println!(
        "  \"tasks_per_second\": {:.0}, \"audits\": {}, \"broken_promises\": 0,",
        tasks as f64 / seconds,
        out.audits
    );
    println!(
        "  \"succeeded\": {}, \"failed\": {}, \"cancelled\": {},",
        out.succeeded, out.failed, out.cancelled
    );
    println!(
        "  \"of_several_devices\": {}, \"memory_reserved_percent\": {:.1},",
        out.wide, out.memory_percent
    );
    println!("  \"tasks_on_a_device\": [{low}, {high}]");
    println!("}}");
}
