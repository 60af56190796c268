//! One named test of each case, for each store.

/// Makes a module of tests, one a case, of a store's [`Harness`](crate::Harness).
///
/// A store whose clock stands still until it is advanced adds
/// [`conformance_virtual_time!`](crate::conformance_virtual_time).
#[macro_export]
macro_rules! conformance {
    ($module:ident, $harness:ty) => {
        mod $module {
            $crate::cases_as_tests! { $harness, cases,
                capabilities {
                    the_store_names_itself,
                    capabilities_are_exactly_the_expected_ones,
                    two_backends_are_one_store,
                }
                grant {
                    a_free_lock_is_granted_and_the_handle_says_it_all,
                    a_private_grant_has_a_session_of_its_own,
                    inv01_a_held_lock_is_held_for_everybody_else,
                    a_shot_that_met_a_holder_leaves_nothing,
                    locks_do_not_touch_each_other,
                    c24_an_owner_is_a_label_and_no_identity,
                    a_session_that_is_not_there_is_granted_nothing,
                    a_session_is_the_stores_not_the_servers,
                }
                tokens {
                    inv04_tokens_rise_however_a_grant_ends,
                    inv04_tokens_rise_across_expiry_and_reaping,
                    inv04_tokens_rise_within_a_session,
                    inv04_losing_shots_do_not_turn_tokens_back,
                    a_grant_keeps_its_token_for_life,
                }
                sessions {
                    open_says_it_all,
                    ids_are_unique,
                    opening_an_open_id_extends_that_session,
                    opening_an_id_as_something_else_is_refused,
                    a_look_lists_exactly_what_is_held,
                    a_look_extends_nothing,
                    an_unknown_session_is_gone,
                    close_frees_all_locks_at_once,
                    a_private_session_lives_and_dies_with_its_lock,
                    an_open_session_outlives_its_locks,
                }
                keep_alive {
                    a_kept_session_lives_on,
                    c15_exactly_the_lost_grant_is_named,
                    whatever_is_not_there_is_named,
                    an_ended_session_is_never_revived,
                    extending_a_grant_extends_its_lease,
                }
                expiry {
                    c14_renewing_after_expiry_is_lost_though_nobody_took_it,
                    a_lease_lasts,
                    expiry_frees_every_lock_of_the_session,
                    an_ended_session_is_granted_nothing,
                    operators_find_an_expired_lock_free,
                    reaping_counts_what_has_ended,
                }
                attempts {
                    c20_the_same_attempt_finds_its_own_grant,
                    inv03_a_repeat_lengthens_nothing,
                    an_attempt_of_somebody_else_is_refused,
                    attempts_are_compared_within_their_key,
                    recovering_never_creates_a_grant,
                    an_unsettled_attempt_is_new_after_its_release,
                    a_repeat_after_the_lock_changed_hands_meets_the_new_holder,
                    a_repeat_by_a_closed_session_is_granted_nothing,
                    a_repeat_after_expiry_revives_nothing,
                }
                forget {
                    forgetting_ends_the_grant,
                    a_late_request_of_a_settled_attempt_is_refused,
                    a_duplicate_after_the_release_is_refused_once_settled,
                    a_private_session_ends_with_its_attempt,
                    a_private_attempt_is_settled_by_its_session_too,
                    a_private_session_takes_no_other_lock,
                    forgetting_touches_no_other_grant,
                    forgetting_for_a_session_that_is_gone_is_no_error,
                    a_session_settles_only_so_many,
                }
                release {
                    a_release_frees_the_lock_once,
                    inv06_only_the_very_token_releases,
                    c22_a_stale_holder_touches_nothing,
                    a_release_frees_only_its_lock,
                }
                revoke {
                    c25_a_wrong_expectation_changes_nothing,
                    c25_revoking_twice_and_revoking_a_free_lock,
                    a_revoked_holder_is_told_and_keeps_the_rest,
                    a_private_session_dies_with_a_revoke,
                    a_revoked_attempt_may_compete_anew,
                    a_revoke_touches_one_key,
                }
                floors {
                    a_raise_ends_grants_and_lifts_tokens,
                    a_low_raise_lowers_nothing,
                    a_raise_holds_before_the_first_lock,
                    a_leap_is_refused,
                    c69_a_stale_holder_meets_the_new_numbering,
                }
                reads {
                    a_free_lock_shows_nothing,
                    a_held_lock_shows_its_holder,
                    the_shown_expiry_is_the_leases,
                    a_linearizable_read_misses_nothing,
                }
                directory {
                    c30_odd_names_are_listed_in_byte_order,
                    a_listing_shows_what_a_read_shows,
                    only_live_locks_are_listed,
                    namespaces_are_listed_apart,
                    a_prefix_is_bytes,
                    after_is_a_place_between_names,
                    limits_are_exact,
                    the_longest_names_are_paged,
                    what_is_held_throughout_is_listed_once,
                }
                waiting {
                    inv08_a_release_before_the_wait_counts,
                    inv08_a_handoff_before_the_wait_counts,
                    inv08_every_end_of_a_grant_wakes,
                    inv08_expiry_wakes,
                    inv08_expiry_before_the_wait_counts,
                    a_renew_wakes_nobody,
                    other_locks_wake_nobody,
                    the_deadline_ends_a_wait,
                    inv10_dropped_waits_leave_nothing,
                    a_release_wakes_all_who_wait,
                    a_strangers_place_is_answered_with_fallback,
                    inv08_no_interleaving_loses_a_release,
                }
                deadlines {
                    a_deadline_in_the_past_does_nothing,
                    a_deadline_ahead_is_honoured,
                }
                unknown {
                    c20_a_swallowed_grant_is_found_by_its_attempt,
                    a_lost_request_is_made_good_by_its_repeat,
                    inv09_forget_settles_whatever_became_of_it,
                    a_swallowed_release_has_freed_the_lock,
                    inv06_a_late_release_touches_no_successor,
                    a_swallowed_renewal_is_repeated,
                    a_swallowed_close_has_freed_everything,
                    a_swallowed_forget_has_settled_the_attempt,
                    a_swallowed_open_is_found_by_its_id,
                    a_swallowed_revoke_has_revoked,
                }
                input {
                    c30_odd_names_are_different_locks,
                    the_longest_names_are_different_locks,
                    namespace_and_name_do_not_run_together,
                    owners_come_back_as_they_went_in,
                    reasons_are_taken_as_they_are,
                    extreme_lifetimes_are_kept,
                    the_greatest_token_is_nobodys,
                }
                limits {
                    sessions_are_limited,
                    locks_are_limited,
                }
                measured {
                    a_lifetime_is_rounded_up_as_the_table_says,
                    tokens_step_as_the_table_says,
                    a_waiter_is_counted_where_it_waits,
                    what_the_suite_reckons_with,
                }
                races {
                    inv01_of_many_exactly_one_is_granted,
                    c20_repeats_at_once_are_one_grant,
                    c46_tokens_rise_in_grant_order,
                    closing_while_acquiring_leaves_nothing_held,
                    releasing_while_acquiring,
                    inv09_forgetting_while_acquiring_leaves_nothing_held,
                    inv09_dropped_inserts_are_settled,
                    dropped_calls_break_nothing,
                    a_grant_ends_once,
                    renewing_while_revoking_revives_nothing,
                    opening_one_id_at_once_is_one_session,
                    crossing_orders_do_not_deadlock,
                    inv04_raising_while_acquiring,
                }
            }
        }
    };
}

/// Makes a module of tests of what only an advanced clock can tell apart.
#[macro_export]
macro_rules! conformance_virtual_time {
    ($module:ident, $harness:ty) => {
        mod $module {
            $crate::cases_as_tests! { $harness, cases,
                virtual_time {
                    a_lease_ends_at_its_end,
                    inv03_deadlines_are_exact,
                    a_settled_private_attempt_is_remembered_for_a_week,
                }
            }
        }
    };
}

/// Of each listed case one test: a fresh store, the case under a bound of real time, clean-up.
#[doc(hidden)]
#[macro_export]
macro_rules! cases_as_tests {
    ($harness:ty, $area:ident, $($group:ident { $($case:ident,)* })*) => {
        $(mod $group {
            #[allow(unused_imports, reason = "the harness may be named by a path")]
            use super::super::*;

            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $case() {
                let harness = <$harness as $crate::Harness>::start().await;
                let case = $crate::$area::$group::$case(&harness);
                let case = $crate::kit::bounded(stringify!($case), case);
                $crate::notes::noting(concat!(module_path!(), "::", stringify!($case)), case).await;
                $crate::Harness::finish(harness).await;
            })*
        })*
    };
}
