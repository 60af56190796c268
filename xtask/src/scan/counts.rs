//! How many cases each route had, as the hooks of the tool counted them.

use std::collections::BTreeMap;
use std::fmt;

/// A route and its answers.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Route {
    call: String,
    /// How often each status was answered.
    answers: BTreeMap<u16, u64>,
}

impl Route {
    /// How many answers there were.
    pub(super) fn cases(&self) -> u64 {
        self.answers.values().sum()
    }
}

impl fmt::Display for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:30} {:5}:", self.call, self.cases())?;
        for (status, count) in &self.answers {
            write!(f, "  {count} x {status}")?;
        }
        Ok(())
    }
}

/// Reads lines of a call, a status and a count, apart by tabs; a line that is none is left out.
pub(super) fn read(text: &str) -> Vec<Route> {
    let mut routes: BTreeMap<&str, BTreeMap<u16, u64>> = BTreeMap::new();
    for line in text.lines() {
        let mut parts = line.split('\t');
        if let (Some(call), Some(status), Some(count)) = (parts.next(), parts.next(), parts.next())
            && let (Ok(status), Ok(count)) = (status.parse(), count.parse::<u64>())
        {
            *routes.entry(call).or_default().entry(status).or_default() += count;
        }
    }
    let route = |(call, answers)| Route { call: str::to_owned(call), answers };
    routes.into_iter().map(route).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_summed_up_by_route() {
        let routes = read("POST /b\t200\t3\nGET /a\t404\t1\nPOST /b\t409\t2\nno count\n");
        let shown: Vec<_> = routes.iter().map(ToString::to_string).collect();
        assert_eq!(shown[0].split_whitespace().collect::<Vec<_>>().join(" "), "GET /a 1: 1 x 404");
        assert!(shown[1].ends_with("    5:  3 x 200  2 x 409"), "{}", shown[1]);
        assert_eq!(routes.iter().map(Route::cases).sum::<u64>(), 6);
    }
}
