//! The rule itself, on random sequences of tokens (INV-05).

use dlock_fence::{FencingToken, HighWaterMark};
use proptest::{collection::vec, prelude::*};

/// Few enough that equal ones meet, with both ends of what is a token.
fn tokens() -> impl Strategy<Value = Vec<u64>> {
    let number = prop_oneof![8 => 1..20_u64, 1 => Just(FencingToken::MAX), 1 => any::<u32>().prop_map(|n| u64::from(n) + 1)];
    vec(number, 0..60)
}

proptest! {
    #[test]
    fn inv05_what_is_accepted_never_falls_and_what_is_refused_changes_nothing(
        numbers in tokens(),
        restart_at in 0..60_usize,
    ) {
        let mut mark = HighWaterMark::new();
        let mut highest = 0;
        for (at, number) in numbers.into_iter().enumerate() {
            if at == restart_at {
                // Kept by the resource, and read back.
                mark = HighWaterMark::restored(mark.highest());
            }
            let token = FencingToken::from_user(number).unwrap();
            match mark.accept(token) {
                Ok(()) => {
                    prop_assert!(number >= highest);
                    highest = number;
                }
                Err(stale) => {
                    prop_assert!(number < highest);
                    prop_assert_eq!(stale.presented, token);
                    prop_assert_eq!(stale.highest.get(), highest);
                }
            }
            prop_assert_eq!(mark.highest().map_or(0, FencingToken::get), highest);
        }
    }
}
