//! One named test of each case of the service, for each store.

/// Makes a module of tests, one a case, of a service over a store's
/// [`ServiceHarness`](crate::ServiceHarness).
#[macro_export]
macro_rules! service_conformance {
    ($module:ident, $harness:ty) => {
        mod $module {
            $crate::cases_as_tests! { $harness, service_cases,
                acquiring {
                    a_free_lock_is_acquired_and_released,
                    without_a_wait_there_is_one_shot,
                    a_lock_is_not_reentrant,
                    inv08_a_release_here_is_granted_to_who_waits,
                    inv08_a_release_there_is_granted_to_who_waits_here,
                    an_expired_lock_is_granted_to_who_waits,
                    a_wait_ends_at_its_end,
                    c32_too_long_a_wait_is_refused,
                    a_dead_session_is_told_at_once,
                }
                line {
                    j10_waiters_are_served_in_order,
                    who_leaves_the_line_holds_up_nobody,
                    c03_the_head_vanishes_as_it_is_granted,
                    c09_a_line_is_limited,
                    c09_all_lines_together_are_limited,
                    all_get_their_turn_at_two_servers,
                    one_session_waits_in_many_lines,
                }
                watching {
                    c01_a_dead_waiter_is_passed_over,
                    c02_a_dead_waiter_fails_while_the_lock_is_held,
                    a_closed_session_stops_waiting,
                    a_kept_session_goes_on_waiting,
                    sessions_say_when_they_are_gone,
                    a_close_hands_on_every_lock,
                }
                repeating {
                    c20_a_repeat_finds_the_swallowed_grant,
                    c20_a_waiting_call_finds_its_own_grant,
                    inv09_an_unknown_outcome_is_settled,
                    inv09_settling_is_repeated_until_done,
                    inv09_not_granted_means_settled,
                    inv07_a_repeatable_attempt_is_unknown_and_not_refused,
                    inv09_forget_settles_a_repeatable_attempt,
                    c20_repeats_are_one_grant,
                    an_attempt_misused_is_refused,
                    a_finished_attempt_is_refused,
                    forgetting_settles_for_good,
                    forgetting_a_waiting_attempt,
                }
                owning {
                    a_renewal_moves_the_deadline,
                    c14_renewing_after_expiry_is_lost,
                    c22_a_stale_holder_is_told,
                    c24_a_token_of_another_session_is_denied,
                    a_release_says_what_it_found,
                    an_unknown_token_is_lost,
                    a_keep_alive_names_what_is_lost,
                }
                operating {
                    c25_revoking,
                    a_revoke_hands_the_lock_on,
                    inspecting_shows_holder_and_waiters,
                    listing_or_unsupported,
                    raising_a_floor_or_unsupported,
                }
                draining {
                    draining_starts_nothing_and_breaks_nothing,
                    nothing_is_granted_after_the_end_has_begun,
                    a_named_attempt_is_found_at_another_server,
                    a_shutdown_leaves_nothing_running,
                }
                vanishing {
                    inv09_an_unclaimed_grant_is_released,
                    a_grant_that_can_be_claimed_is_kept,
                    inv09_who_left_is_never_granted,
                    operations_outlive_their_callers,
                    a_vanished_release_hands_the_lock_on,
                }
            }
        }
    };
}

/// Makes a module of tests of what only an advanced clock can tell apart.
#[macro_export]
macro_rules! service_conformance_virtual_time {
    ($module:ident, $harness:ty) => {
        mod $module {
            $crate::cases_as_tests! { $harness, service_cases,
                timing {
                    c07_no_shot_in_the_last_50_ms,
                    c07_a_shot_before_the_last_50_ms,
                    the_first_shot_is_always_made,
                    c01_a_session_that_has_just_died,
                }
            }
        }
    };
}

/// Makes a module of tests that measure the whole process: for a test binary of their own.
#[macro_export]
macro_rules! service_conformance_storm {
    ($module:ident, $harness:ty) => {
        mod $module {
            $crate::cases_as_tests! { $harness, service_cases,
                storm {
                    c21_ten_thousand_dropped_acquires,
                }
            }
        }
    };
}
