//! Figures of each device of a table: what is reserved there, and how many tasks are on it.

use super::table::TaskTable;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceView {
    pub device: u32,
    pub total_memory: u64,
    pub reserved_memory: u64,
    pub available_memory: u64,
    pub reserved_share_ppm: u64,
    /// Tasks that hold what they reserved there, those of several devices on each; of them, the ones that a dispatcher is inside of.
    pub tasks: u64,
    pub running: u64,
    /// Tasks in line for this device, and for it among others.
    pub waiting: u64,
    pub waiting_wide: u64,
}

impl DeviceView {
    pub fn fields(&self) -> [(&'static str, u64); 9] {
        [
            ("device", self.device.into()),
            ("total_memory", self.total_memory),
            ("reserved_memory", self.reserved_memory),
            ("available_memory", self.available_memory),
            ("reserved_share_ppm", self.reserved_share_ppm),
            ("tasks", self.tasks),
            ("running", self.running),
            ("waiting", self.waiting),
            ("waiting_wide", self.waiting_wide),
        ]
    }
}

impl TaskTable {
    /// By device.
    pub fn device_views(&mut self, now: u64) -> Vec<DeviceView> {
        self.advance(now);
        let view = |(number, state): (usize, &super::room::DeviceState)| {
            let ledger = &self.partitions.ledgers()[number];
            let (waiting, wide) = self.waiting.on_device(number);
            DeviceView {
                device: number as u32,
                total_memory: self.partitions.config().memory_of(number),
                reserved_memory: ledger.reserved().memory_bytes,
                available_memory: ledger.available().memory_bytes,
                reserved_share_ppm: ledger.reserved().share_ppm.into(),
                tasks: state.tasks,
                waiting: waiting as u64,
                waiting_wide: wide as u64,
                ..DeviceView::default()
            }
        };
        let mut views: Vec<DeviceView> = self.devices.iter().enumerate().map(view).collect();
        for &key in &self.occupied {
            for device in self.devices_of(&self.tasks[key]).iter() {
                views[device as usize].running += 1;
            }
        }
        views
    }
}
