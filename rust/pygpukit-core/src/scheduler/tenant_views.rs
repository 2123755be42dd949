//! What is told of the tasks of each name.

use super::name::Name;
use super::phase::Phase;
use super::table::TaskTable;
use super::tenants::TenantUse;
use crate::hash::Seeded;
use std::collections::HashMap;

/// The tasks of one name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TenantView {
    /// None: those that came when there were names enough.
    pub name: Option<Name>,
    pub total: TenantUse,
    /// Tasks in the lines of their partitions, and the best place of one, from 1; 0 when there is none.
    pub waiting: u64,
    pub place: u64,
    /// Numbers of those under way.
    pub running: Vec<u64>,
}

impl TaskTable {
    /// Every tenant in the order in which it was first seen, and last the others when there are any.
    pub fn tenants(&mut self, now: u64) -> Vec<TenantView> {
        self.advance(now);
        let keys = self.tasks.keys();
        let at: Vec<Option<usize>> = keys
            .iter()
            .map(|&key| self.tenants.place(&self.tasks[key].spec.name))
            .collect();
        let mut views: Vec<TenantView> = self.tenants.totals.iter().map(TenantView::of).collect();
        for (name, &place) in &self.tenants.places {
            views[place].name = Some(name.clone());
        }
        let mut others = TenantView::of(&self.tenants.others);
        let ahead: HashMap<_, usize, Seeded> = self.waiting.places().collect();
        for (key, place) in keys.into_iter().zip(at) {
            let view = place.map_or(&mut others, |place| &mut views[place]);
            let task = &self.tasks[key];
            view.total += task.used();
            if let Some(&ahead) = ahead.get(&key) {
                let place = ahead as u64 + 1;
                view.place = if view.waiting == 0 {
                    place
                } else {
                    view.place.min(place)
                };
                view.waiting += 1;
            }
            if matches!(task.phase, Phase::Running | Phase::Suspended) {
                view.running.push(key.number);
            }
        }
        if others.total.tasks > 0 {
            views.push(others);
        }
        views
    }

    /// Tasks in line by partition, "" for the default; partitions whose line is empty too.
    pub fn depths(&self) -> Vec<(String, u64)> {
        let named = self
            .partitions
            .ids()
            .filter_map(|id| Some((id, self.partitions.slot_of(id).ok()?)));
        let named: Vec<_> = named
            .map(|(id, slot)| (id.to_string(), self.waiting.len(slot) as u64))
            .collect();
        let rest = self.waiting.places().count() as u64 - named.iter().map(|(_, depth)| depth).sum::<u64>();
        std::iter::once((String::new(), rest)).chain(named).collect()
    }
}

impl TenantView {
    fn of(total: &TenantUse) -> TenantView {
        TenantView {
            total: *total,
            ..TenantView::default()
        }
    }
}
