//! A set of devices, by number.

/// Marking and walking cost no memory once it has grown.
#[derive(Default)]
pub(super) struct DeviceSet {
    marked: Vec<bool>,
    list: Vec<usize>,
}

impl DeviceSet {
    pub fn mark(&mut self, device: usize) {
        if self.marked.len() <= device {
            self.marked.resize(device + 1, false);
        }
        if !std::mem::replace(&mut self.marked[device], true) {
            self.list.push(device);
        }
    }

    pub fn contains(&self, device: usize) -> bool {
        self.marked.get(device).copied().unwrap_or(false)
    }

    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    pub fn clear(&mut self) {
        for device in self.list.drain(..) {
            self.marked[device] = false;
        }
    }

    /// In the order in which they were marked.
    pub fn as_slice(&self) -> &[usize] {
        &self.list
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_device_is_there_once() {
        let mut set = DeviceSet::default();
        [3, 0, 3].into_iter().for_each(|device| set.mark(device));
        assert_eq!(set.as_slice(), [3, 0]);
        assert!(set.contains(3) && !set.contains(1) && !set.contains(9));
        set.clear();
        assert!(set.is_empty());
        set.mark(3);
        assert_eq!(set.as_slice(), [3]);
    }
}
