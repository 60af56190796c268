//! Durations as people write them: `500ms`, `30s`, `5m`, `2h`, `7d` (C5).

use std::time::Duration;

/// Reads a whole number with its unit.
pub(crate) fn parse(text: &str) -> Result<Duration, String> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let millis_per_unit = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return Err("must be a whole number with a unit: ms, s, m, h or d".into()),
    };
    let number: u64 = number.parse().map_err(|_| "must start with a whole number".to_owned())?;
    let millis = number.checked_mul(millis_per_unit).ok_or("is too long")?;
    Ok(Duration::from_millis(millis))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_unit_and_nothing_else() {
        for (text, millis) in
            [("0s", 0), ("500ms", 500), ("30s", 30_000), ("5m", 300_000), ("7d", 604_800_000)]
        {
            assert_eq!(parse(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        for bad in ["", "5", "s", "-1s", "0.5s", "5 s", "5sec", "1e3s", "99999999999999999999s"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
        assert!(parse(&format!("{}d", u64::MAX)).is_err());
    }
}
