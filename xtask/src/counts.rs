//! What tests say they came to.

/// Sums over all test binaries.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Tests that passed.
    pub passed: u64,
    /// Tests that failed.
    pub failed: u64,
    /// Tests that were not run because they are marked so.
    pub ignored: u64,
}

impl Counts {
    /// Adds what a line says, if it is the sum of one test binary.
    pub fn add(&mut self, line: &str) {
        let Some(result) = line.trim_start().strip_prefix("test result: ") else { return };
        let words: Vec<_> = result.split([' ', ';', '.', '\n']).collect();
        for pair in words.windows(2) {
            let sum = match pair[1] {
                "passed" => &mut self.passed,
                "failed" => &mut self.failed,
                "ignored" => &mut self.ignored,
                _ => continue,
            };
            *sum += pair[0].parse::<u64>().unwrap_or(0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OK: &str = "test result: ok. 12 passed; 0 failed; 1 ignored; 0 measured; 3 filtered out; \
                      finished in 0.42s\n";
    const BAD: &str = "test result: FAILED. 2 passed; 3 failed; 0 ignored; 0 measured\n";

    #[test]
    fn sums_are_taken_over_all_result_lines_and_no_others() {
        let mut counts = Counts::default();
        for line in [OK, "test a_result_of_5 passed ... ok\n", BAD, "9 passed; 9 failed\n"] {
            counts.add(line);
        }
        assert_eq!(counts, Counts { passed: 14, failed: 3, ignored: 1 });
    }
}
