//! QoS classes, derived as Kubernetes derives them; the class a caller names fills in limits and is then held to be true.

use super::spec::{Policy, TaskSpec};
use crate::partition::words::{bytes, percent, Words};
use crate::partition::{Reservation, SpecError};

/// What a task asks for, and up to where it may go; None = no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Demand {
    pub request: Reservation,
    pub memory_limit: Option<u64>,
    pub share_limit_ppm: Option<u32>,
}

impl Demand {
    /// The class: Guaranteed when memory and share are both requested with limits equal to the requests, BestEffort when nothing
    /// is requested, else Burstable. A limit without a request counts as a request of that size.
    pub fn class(&self) -> Policy {
        let Demand { request, .. } = self.with_requests();
        let limits = (self.memory_limit, self.share_limit_ppm);
        if request.is_empty() {
            Policy::BestEffort
        } else if request.memory_bytes > 0
            && request.share_ppm > 0
            && limits == (Some(request.memory_bytes), Some(request.share_ppm))
        {
            Policy::Guaranteed
        } else {
            Policy::Burstable
        }
    }

    /// The same with the limits that `class` needs filled in. Err names the field that contradicts the class or its own limit.
    pub fn filled(&self, class: Policy) -> Result<Demand, SpecError> {
        let mut demand = self.with_requests();
        let Reservation {
            memory_bytes,
            share_ppm,
        } = demand.request;
        let limits = [
            ("memory_limit", demand.memory_limit, memory_bytes, bytes as Words),
            (
                "bandwidth_limit",
                demand.share_limit_ppm.map(u64::from),
                share_ppm.into(),
                percent,
            ),
        ];
        for (field, limit, request, words) in limits {
            match limit {
                Some(0) => {
                    return Err(SpecError::new(
                        field,
                        format!("{}; leave it out for no limit", words(0)),
                    ))
                }
                Some(limit) if limit < request => {
                    let message = format!("{} is less than the request, {}", words(limit), words(request));
                    return Err(SpecError::new(field, message));
                }
                Some(limit) if class == Policy::Guaranteed && limit != request => {
                    let (limit, request) = (words(limit), words(request));
                    let message = format!("{limit}; for Guaranteed it equals the request, {request}");
                    return Err(SpecError::new(field, message));
                }
                _ => {}
            }
        }
        if class == Policy::Guaranteed {
            let missing = match (memory_bytes, share_ppm) {
                (0, 0) => Some(("policy", "neither memory nor bandwidth")),
                (0, _) => Some(("memory", "no memory")),
                (_, 0) => Some(("bandwidth", "no bandwidth")),
                _ => None,
            };
            if let Some((field, what)) = missing {
                let message = format!("Guaranteed with {what} requested; it needs both");
                return Err(SpecError::new(field, message));
            }
            (demand.memory_limit, demand.share_limit_ppm) = (Some(memory_bytes), Some(share_ppm));
        }
        let derived = demand.class();
        if derived == class {
            return Ok(demand);
        }
        let field = match (class, memory_bytes) {
            (Policy::BestEffort, 1..) => "memory",
            (Policy::BestEffort, 0) => "bandwidth",
            _ => "policy",
        };
        let (class, derived) = (class.name(), derived.name());
        let message = format!("{class} asked, but requests and limits make it {derived}; change one or the other");
        Err(SpecError::new(field, message))
    }

    fn with_requests(&self) -> Demand {
        let mut demand = *self;
        if demand.request.memory_bytes == 0 {
            demand.request.memory_bytes = self.memory_limit.unwrap_or(0);
        }
        if demand.request.share_ppm == 0 {
            demand.request.share_ppm = self.share_limit_ppm.unwrap_or(0);
        }
        demand
    }
}

impl TaskSpec {
    pub fn demand(&self) -> Demand {
        Demand {
            request: self.reservation(),
            memory_limit: self.memory_limit,
            share_limit_ppm: self.share_limit_ppm,
        }
    }

    /// Fills in what the policy implies.
    pub(super) fn fill(&mut self) -> Result<(), SpecError> {
        let demand = self.demand().filled(self.policy)?;
        (self.memory_bytes, self.share_ppm) = (demand.request.memory_bytes, demand.request.share_ppm);
        (self.memory_limit, self.share_limit_ppm) = (demand.memory_limit, demand.share_limit_ppm);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn demand(memory_bytes: u64, share_ppm: u32, memory_limit: Option<u64>, share_limit_ppm: Option<u32>) -> Demand {
        Demand {
            request: Reservation {
                memory_bytes,
                share_ppm,
            },
            memory_limit,
            share_limit_ppm,
        }
    }

    #[test]
    fn classes_are_those_of_kubernetes() {
        for (asked, class) in [
            (demand(0, 0, None, None), Policy::BestEffort),
            (demand(1, 0, None, None), Policy::Burstable),
            (demand(0, 1, None, None), Policy::Burstable),
            (demand(1, 1, None, None), Policy::Burstable),
            (demand(1, 1, Some(1), None), Policy::Burstable),
            (demand(1, 0, Some(1), None), Policy::Burstable),
            (demand(1, 1, Some(1), Some(2)), Policy::Burstable),
            (demand(1, 1, Some(1), Some(1)), Policy::Guaranteed),
            (demand(0, 0, Some(1), Some(1)), Policy::Guaranteed),
            (demand(0, 0, Some(1), None), Policy::Burstable),
        ] {
            assert_eq!(asked.class(), class, "{asked:?}");
            assert_eq!(asked.filled(class).unwrap().class(), class);
        }
    }

    #[test]
    fn a_class_fills_in_its_limits_or_names_what_contradicts_it() {
        let full = demand(5, 7, None, None).filled(Policy::Guaranteed).unwrap();
        assert_eq!((full.memory_limit, full.share_limit_ppm), (Some(5), Some(7)));
        for (asked, class, field) in [
            (demand(0, 0, None, None), Policy::Guaranteed, "policy"),
            (demand(1, 0, None, None), Policy::Guaranteed, "bandwidth"),
            (demand(0, 1, None, None), Policy::Guaranteed, "memory"),
            (demand(1, 1, Some(2), None), Policy::Guaranteed, "memory_limit"),
            (demand(1, 1, None, Some(2)), Policy::Guaranteed, "bandwidth_limit"),
            (demand(2, 0, Some(1), None), Policy::Burstable, "memory_limit"),
            (demand(0, 2, None, Some(1)), Policy::Burstable, "bandwidth_limit"),
            (demand(1, 0, Some(0), None), Policy::Burstable, "memory_limit"),
            (demand(0, 0, None, None), Policy::Burstable, "policy"),
            (demand(1, 1, Some(1), Some(1)), Policy::Burstable, "policy"),
            (demand(1, 0, None, None), Policy::BestEffort, "memory"),
            (demand(0, 1, None, None), Policy::BestEffort, "bandwidth"),
        ] {
            assert_eq!(asked.filled(class).unwrap_err().field, field, "{asked:?} as {class:?}");
        }
    }
}
