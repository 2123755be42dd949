//! Pausing one task: it is neither admitted nor started, and launches nothing, until it is resumed.

use super::error::TaskError;
use super::key::Key;
use super::phase::Phase;
use super::reason::Reason;
use super::table::TaskTable;

impl TaskTable {
    /// Holds an unfinished task back until `resume`; false when it was paused already. One that waits goes on waiting and holds nobody
    /// back. One that is admitted gives back what it reserved, and waits. One that runs is Suspended: it keeps what it reserved, and
    /// its next launch waits. Deadlines go on. What runs in a worker process cannot be paused: its launches pass no gate of this one.
    pub fn pause(&mut self, id: &str, now: u64) -> Result<bool, TaskError> {
        self.advance(now);
        let key = self.unfinished(id)?;
        let task = &self.tasks[key];
        if task.paused() {
            return Ok(false);
        }
        let slot = task.slot();
        let phase = task.phase;
        match phase {
            Phase::Running => {
                let partition = self.partitions.at(slot);
                if partition.limits.isolation.in_worker() {
                    let (id, partition) = (id.to_string(), partition.id.to_string());
                    return Err(TaskError::Elsewhere { id, partition });
                }
                self.move_to(key, Phase::Suspended, Reason::None, now);
            }
            Phase::Admitted => {
                self.move_to(key, Phase::Queued, Reason::WaitingForResume, now);
                self.vacate(key, now);
            }
            _ => {
                if self.leave_line(key, now) {
                    self.unsettle(key);
                }
            }
        }
        self.context_of(key).set_paused(true);
        self.advance(now);
        Ok(true)
    }

    /// Lets a paused task go on, at its old place; false when it was not paused.
    pub fn resume(&mut self, id: &str, now: u64) -> Result<bool, TaskError> {
        self.advance(now);
        let key = self.unfinished(id)?;
        let task = &self.tasks[key];
        if !task.paused() {
            return Ok(false);
        }
        self.context_of(key).set_paused(false);
        if task.phase == Phase::Suspended {
            self.move_to(key, Phase::Running, Reason::None, now);
        } else if task.unmet == 0 && task.held_until_ns == 0 {
            self.make_ready(key, now);
        }
        self.advance(now);
        Ok(true)
    }

    pub(super) fn unfinished(&self, id: &str) -> Result<Key, TaskError> {
        let key = self.key(id)?;
        let phase = self.tasks[key].phase;
        if phase.is_terminal() {
            let id = id.to_string();
            return Err(TaskError::Ended { id, phase });
        }
        Ok(key)
    }
}
