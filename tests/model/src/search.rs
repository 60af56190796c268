//! Many cases, the same ones every time.

use std::cell::RefCell;
use std::fmt;
use std::sync::atomic::Ordering;

use proptest::test_runner::{
    Config, RngAlgorithm, RngSeed, TestCaseError, TestError, TestRng, TestRunner,
};
use proptest_state_machine::ReferenceStateMachine;

use crate::{
    harness::Harness,
    ledger::Seen,
    machine::Machine,
    op::Step,
    run::{Judges, run_case},
};

/// The longest sequence.
const LONGEST: usize = 60;
/// How often a failing sequence is shortened.
const MOST_SHRINKS: u32 = 4_000;
/// Raises the number of cases.
const CASES: &str = "TEST_DLOCK_MODEL_CASES";

/// A sequence whose answers are wrong, shortened.
#[derive(Clone, Debug)]
pub struct Failure {
    /// Which store.
    pub store: String,
    /// What is wrong.
    pub why: String,
    /// The shortest sequence that was found.
    pub steps: Vec<Step>,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: {}", self.store, self.why)?;
        for step in &self.steps {
            writeln!(f, "    {step:?},")?;
        }
        Ok(())
    }
}

/// Runs the harness's number of cases (or `TEST_DLOCK_MODEL_CASES`, if that is more) from a fixed seed,
/// and adds up what was seen.
///
/// # Errors
/// The first failure, shortened.
pub fn search(harness: &dyn Harness, judges: Judges, seed: u8) -> Result<Seen, Box<Failure>> {
    let failure =
        |why: String, steps| Box::new(Failure { store: harness.name().to_owned(), why, steps });
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| failure(error.to_string(), Vec::new()))?;
    let more = std::env::var(CASES).ok().and_then(|text| text.parse().ok()).unwrap_or(0);
    let mut runner = TestRunner::new_with_rng(config(harness.cases().max(more)), rng(seed));
    let seen = RefCell::new(Seen::new());
    let strategy = Machine::sequential_strategy(1..=LONGEST);
    let result = runner.run(&strategy, |(_, steps, begun)| {
        let case = runtime.block_on(run_case(harness, judges, &steps));
        if let Some(begun) = begun {
            // What the failing run never came to is dropped first when it is shortened.
            let count = case.as_ref().map_or_else(|wrong| wrong.begun, |_| steps.len());
            begun.store(count.min(steps.len()), Ordering::Relaxed);
        }
        let of_case = case.map_err(|wrong| TestCaseError::fail(wrong.why))?;
        let mut seen = seen.borrow_mut();
        for (what, times) in of_case {
            *seen.entry(what).or_default() += times;
        }
        Ok(())
    });
    match result {
        Ok(()) => Ok(seen.into_inner()),
        Err(TestError::Fail(why, (_, steps, _))) => Err(failure(why.to_string(), steps)),
        Err(TestError::Abort(why)) => Err(failure(format!("gave up: {why}"), Vec::new())),
    }
}

/// Every field that the environment could set is set here.
fn config(cases: u32) -> Config {
    Config {
        cases,
        failure_persistence: None,
        fork: false,
        timeout: 0,
        max_shrink_time: 0,
        max_shrink_iters: MOST_SHRINKS,
        verbose: 0,
        rng_algorithm: RngAlgorithm::ChaCha,
        rng_seed: RngSeed::Fixed(0),
        max_local_rejects: 65_536,
        max_global_rejects: 1_024,
        max_flat_map_regens: 1_000_000,
        max_default_size_range: 100,
        ..Config::default()
    }
}

fn rng(seed: u8) -> TestRng {
    TestRng::from_seed(RngAlgorithm::ChaCha, &[seed; 32])
}
