//! Contexts of several models on shared devices: which there are, and what of each device they were promised.

use super::context::TaskContext;
use super::name::Name;
use crate::partition::{SpecError, MAX_TEXT_BYTES, WHOLE_SHARE_PPM};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// What a model asks for. `max_memory` 0: no limit of its own, only its device's budget.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelSpec {
    pub id: Name,
    pub device: i32,
    pub max_memory: u64,
    pub share_ppm: u32,
}

/// Why there is no context.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ModelError {
    Spec(SpecError),
    /// Its memory and what the others of its device may have are over the budget.
    OverBudget {
        asked: u64,
        promised: u64,
        budget: u64,
    },
}

impl From<SpecError> for ModelError {
    fn from(error: SpecError) -> ModelError {
        ModelError::Spec(error)
    }
}

/// The contexts of a process. No call waits or touches a device.
#[derive(Debug)]
pub struct ModelTable {
    ordinal: u32,
    created: u64,
    /// Bytes by device; a device that is not here has no budget.
    budgets: HashMap<i32, u64>,
    models: BTreeMap<Name, (ModelSpec, Arc<TaskContext>)>,
}

impl ModelTable {
    /// ordinal: as of `Config`; the contexts' numbers are made of it.
    pub fn new(ordinal: u32) -> ModelTable {
        ModelTable {
            ordinal,
            created: 0,
            budgets: HashMap::new(),
            models: BTreeMap::new(),
        }
    }

    fn on(&self, device: i32) -> impl Iterator<Item = &ModelSpec> {
        let specs = self.models.values().map(|(spec, _)| spec);
        specs.filter(move |spec| spec.device == device)
    }

    /// Bytes that the contexts of a device may have by their own limits.
    pub fn promised_memory(&self, device: i32) -> u64 {
        self.on(device).map(|spec| spec.max_memory).sum()
    }

    pub fn promised_share_ppm(&self, device: i32) -> u32 {
        self.on(device).map(|spec| spec.share_ppm).sum()
    }

    pub fn budget(&self, device: i32) -> Option<u64> {
        self.budgets.get(&device).copied()
    }

    /// What the contexts of a device may have together. Fails when their limits are more than that already.
    pub fn set_budget(&mut self, device: i32, bytes: u64) -> Result<(), ModelError> {
        let promised = self.promised_memory(device);
        if promised > bytes {
            return Err(ModelError::OverBudget {
                asked: 0,
                promised,
                budget: bytes,
            });
        }
        self.budgets.insert(device, bytes);
        Ok(())
    }

    /// A new context; nothing changes on failure.
    pub fn create(&mut self, spec: ModelSpec) -> Result<Arc<TaskContext>, ModelError> {
        match spec.id.len() {
            0 => return Err(SpecError::new("llm_id", "it is empty; give every context a name".into()).into()),
            1..=MAX_TEXT_BYTES => {}
            n => return Err(SpecError::new("llm_id", format!("{n} bytes; at most {MAX_TEXT_BYTES}")).into()),
        }
        if self.models.contains_key(&spec.id) {
            let message = format!(
                "a context '{}' exists; choose another name or destroy it first",
                spec.id
            );
            return Err(SpecError::new("llm_id", message).into());
        }
        self.check(
            &spec,
            self.promised_memory(spec.device),
            self.promised_share_ppm(spec.device),
        )?;
        self.created += 1;
        let number = u64::from(self.ordinal) << 32 | self.created;
        let context = Arc::new(TaskContext::new(
            number,
            spec.id.clone(),
            spec.share_ppm,
            WHOLE_SHARE_PPM,
        ));
        self.models.insert(spec.id.clone(), (spec, context.clone()));
        Ok(context)
    }

    /// What the others of its device were promised and what it asks for are no more than there is.
    fn check(&self, spec: &ModelSpec, promised: u64, reserved: u32) -> Result<(), ModelError> {
        if spec.share_ppm > WHOLE_SHARE_PPM - reserved.min(WHOLE_SHARE_PPM) {
            let [asked, reserved] = [spec.share_ppm, reserved].map(|ppm| f64::from(ppm) / f64::from(WHOLE_SHARE_PPM));
            let message = format!(
                "{asked} asked, {reserved} of device {} is promised to other contexts",
                spec.device
            );
            return Err(SpecError::new("share", message).into());
        }
        let budget = self.budget(spec.device);
        match budget.filter(|&budget| promised.saturating_add(spec.max_memory) > budget) {
            None => Ok(()),
            Some(budget) => Err(ModelError::OverBudget {
                asked: spec.max_memory,
                promised,
                budget,
            }),
        }
    }

    /// Other limits for a context from now on, None: as it is; returns what it has then. On an Err nothing changes. `hold` keeps it to
    /// its new memory, None for no limit of its own, and fails with what it holds when that is more; called last.
    pub fn resize(
        &mut self,
        id: &str,
        max_memory: Option<u64>,
        share_ppm: Option<u32>,
        hold: impl FnOnce(Option<u64>) -> Result<(), u64>,
    ) -> Result<(u64, u32), ModelError> {
        let Some((before, context)) = self.models.get(id) else {
            let message = format!("no context '{id}'; create it first");
            return Err(SpecError::new("llm_id", message).into());
        };
        let context = context.clone();
        let spec = ModelSpec {
            max_memory: max_memory.unwrap_or(before.max_memory),
            share_ppm: share_ppm.unwrap_or(before.share_ppm),
            ..before.clone()
        };
        let promised = self.promised_memory(spec.device) - before.max_memory;
        let reserved = self.promised_share_ppm(spec.device) - before.share_ppm;
        self.check(&spec, promised, reserved)?;
        if max_memory.is_some() {
            let limit = Some(spec.max_memory).filter(|&bytes| bytes > 0);
            hold(limit).map_err(|held| {
                let message = format!(
                    "{} bytes asked, '{id}' holds {held}; free arrays of it first",
                    spec.max_memory
                );
                SpecError::new("max_vram", message)
            })?;
        }
        context.set_shares(spec.share_ppm, WHOLE_SHARE_PPM);
        let now = (spec.max_memory, spec.share_ppm);
        self.models.insert(spec.id.clone(), (spec, context));
        Ok(now)
    }

    /// Forgets a context, whose work is stopped: what it has deferred is never issued. False when there is none of that name.
    pub fn destroy(&mut self, id: &str) -> bool {
        let removed = self.models.remove(id);
        removed.map(|(_, context)| context.stop()).is_some()
    }

    /// In the order of their names.
    pub fn ids(&self) -> impl Iterator<Item = &Name> {
        self.models.keys()
    }
}
