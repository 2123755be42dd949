//! The rules of the task table, written down a second time: nothing is kept but the phases, and the rest is recomputed each time.

use pygpukit_core::scheduler::{Phase, Policy, TaskSpec};
use std::cmp::Reverse;

pub const MEMORY: u64 = 100;
pub const SHARE: u32 = 100;
pub const MAX_QUEUE: usize = 12;

pub struct Entry {
    pub spec: TaskSpec,
    pub depends: Vec<usize>,
    pub phase: Phase,
    pub occupied: bool,
    pub paused: bool,
    pub held_until: u64,
    pub requeues: u32,
    pub retries: u32,
    pub lost: bool,
}

impl Entry {
    /// A dispatcher is inside, and it has not ended.
    pub fn runs(&self) -> bool {
        matches!(self.phase, Phase::Running | Phase::Suspended)
    }
}

/// The rules, written down a second time and as plainly as possible. Task i has the id "i".
#[derive(Default)]
pub struct Model {
    pub tasks: Vec<Entry>,
    pub broken: bool,
}

impl Model {
    pub fn reserved(&self) -> (u64, u64) {
        let holders = self
            .tasks
            .iter()
            .filter(|t| matches!(t.phase, Phase::Admitted | Phase::Running | Phase::Suspended) || t.occupied);
        holders.fold((0, 0), |(memory, share), t| {
            let r = t.spec.reservation();
            (memory + r.memory_bytes, share + u64::from(r.share_ppm))
        })
    }

    pub fn end(&mut self, i: usize, phase: Phase) {
        self.tasks[i].phase = phase;
        if phase == Phase::Succeeded {
            return;
        }
        for j in 0..self.tasks.len() {
            if !self.tasks[j].phase.is_terminal() && self.tasks[j].depends.contains(&i) {
                self.end(j, Phase::Failed);
            }
        }
    }

    pub fn advance(&mut self, now: u64) {
        let mut due: Vec<usize> = (0..self.tasks.len())
            .filter(|&i| !self.tasks[i].phase.is_terminal() && (1..=now).contains(&self.tasks[i].spec.deadline_ns))
            .collect();
        due.sort_by_key(|&i| (self.tasks[i].spec.deadline_ns, i));
        for i in due {
            if !self.tasks[i].phase.is_terminal() {
                self.end(i, Phase::Expired);
            }
        }
        for i in 0..self.tasks.len() {
            match self.tasks[i].phase {
                Phase::Queued if self.broken => self.end(i, Phase::Rejected),
                Phase::Admitted if self.broken => self.end(i, Phase::Failed),
                _ => {}
            }
        }
        let mut blocked = false;
        let mut last = None;
        loop {
            // Victims of a preemption come back into this order, behind their preemptor.
            let mut order = self.in_order(Phase::Queued).into_iter();
            let Some(i) = order.find(|&i| last < Some((Reverse(self.tasks[i].spec.priority), i))) else {
                return;
            };
            let task = &self.tasks[i];
            last = Some((Reverse(task.spec.priority), i));
            let met = task.depends.iter().all(|&d| self.tasks[d].phase == Phase::Succeeded);
            if !met || task.paused || task.held_until > now {
                continue;
            }
            if task.spec.reservation().is_empty() || (!blocked && (self.lacks(i, &[]).is_none() || self.preempt(i))) {
                self.tasks[i].phase = Phase::Admitted;
            } else {
                blocked = true;
            }
        }
    }

    /// 0 or 1 for the first resource that is short even without these victims: memory or share.
    fn lacks(&self, i: usize, without: &[usize]) -> Option<usize> {
        let asked = amounts(&self.tasks[i].spec);
        let (memory, share) = self.reserved();
        let mut used = [memory, share];
        for &victim in without {
            let held = amounts(&self.tasks[victim].spec);
            used = [used[0] - held[0], used[1] - held[1]];
        }
        (0..2).find(|&r| asked[r] > 0 && used[r] + asked[r] > [MEMORY, SHARE.into()][r])
    }

    fn preempt(&mut self, i: usize) -> bool {
        let mut lower = self.in_order(Phase::Admitted);
        lower.retain(|&j| self.tasks[j].spec.priority < self.tasks[i].spec.priority);
        lower.reverse();
        let mut victims: Vec<usize> = Vec::new();
        while let Some(short) = self.lacks(i, &victims) {
            let useful = |j: &&usize| !victims.contains(j) && amounts(&self.tasks[**j].spec)[short] > 0;
            let Some(&victim) = lower.iter().find(useful) else {
                return false;
            };
            victims.push(victim);
        }
        for k in (0..victims.len()).rev() {
            let spared = victims.remove(k);
            if self.lacks(i, &victims).is_some() {
                victims.insert(k, spared);
            }
        }
        for victim in victims {
            self.tasks[victim].phase = Phase::Queued;
        }
        true
    }

    pub fn adjust(&mut self, i: usize, priority: Option<i32>, share: Option<u32>) -> bool {
        let reserved = self.reserved().1;
        let task = &mut self.tasks[i];
        let (old, new) = (task.spec.share_ppm, share.unwrap_or(task.spec.share_ppm));
        let holds = matches!(task.phase, Phase::Admitted | Phase::Running | Phase::Suspended);
        let taken = if holds { reserved - u64::from(old) } else { 0 };
        let grows = new > old || !holds;
        if task.phase.is_terminal()
            || (task.spec.policy == Policy::Guaranteed && new == 0)
            || (grows && taken + u64::from(new) > SHARE.into())
        {
            return false;
        }
        task.spec.share_ppm = new;
        task.spec.priority = priority.unwrap_or(task.spec.priority);
        if task.spec.policy != Policy::Guaranteed {
            let nothing = task.spec.reservation().is_empty();
            task.spec.policy = if nothing { Policy::BestEffort } else { Policy::Burstable };
        }
        true
    }

    pub fn in_order(&self, phase: Phase) -> Vec<usize> {
        let mut indices: Vec<usize> = (0..self.tasks.len())
            .filter(|&i| self.tasks[i].phase == phase)
            .collect();
        indices.sort_by_key(|&i| (Reverse(self.tasks[i].spec.priority), i));
        indices
    }

    pub fn submit(&mut self, spec: TaskSpec, now: u64) {
        let i = self.tasks.len();
        let waiting = self
            .tasks
            .iter()
            .filter(|t| matches!(t.phase, Phase::Queued | Phase::Admitted))
            .count();
        let asked = spec.reservation();
        let depends: Vec<usize> = spec.depends_on.iter().map(|id| id.parse().unwrap()).collect();
        let refused = depends.iter().any(|&d| d >= i)
            || match spec.policy {
                Policy::Guaranteed => spec.memory_bytes == 0 || spec.share_ppm == 0,
                Policy::Burstable => asked.is_empty(),
                Policy::BestEffort => !asked.is_empty(),
            }
            || asked.memory_bytes > MEMORY
            || asked.share_ppm > SHARE
            || (1..=now).contains(&spec.deadline_ns)
            || waiting >= MAX_QUEUE
            || self.broken;
        let lost = !refused
            && depends
                .iter()
                .any(|&d| self.tasks[d].phase.is_terminal() && self.tasks[d].phase != Phase::Succeeded);
        let phase = match (refused, lost) {
            (true, _) => Phase::Rejected,
            (_, true) => Phase::Failed,
            _ => Phase::Queued,
        };
        self.tasks.push(Entry {
            spec,
            depends,
            phase,
            occupied: false,
            paused: false,
            held_until: 0,
            requeues: 0,
            retries: 0,
            lost: false,
        });
    }
}

fn amounts(spec: &TaskSpec) -> [u64; 2] {
    [spec.memory_bytes, spec.share_ppm.into()]
}
