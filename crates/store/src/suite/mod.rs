//! Checks a store against the contract.
//!
//! Every check is an ordinary function over any [`Store`](crate::Store) that starts empty. An implementation
//! runs them all with [`store_contract!`](crate::store_contract), which makes one test of each. Nothing here may
//! know how a store works inside.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    reason = "these are tests that several crates share; their names say what they check"
)]

pub mod agents;
pub mod customers;
pub mod deliveries;
pub mod delivery_order;
pub mod grants;
pub mod keys;
pub mod log;
pub mod log_writers;
mod make;
pub mod memories;
pub mod recovery;
pub mod routines;
pub mod runs;
pub mod search;
pub mod session_pages;
pub mod sessions;
pub mod skills;
pub mod usage;

pub use make::{agent, append, at, session, tenant, user_message};

/// Makes a test of every check. `$open` is an async function that returns a new, empty store and whatever has
/// to live as long as it.
#[macro_export]
macro_rules! store_contract {
    ($open:path) => {
        $crate::store_contract! { @tests $open;
            agents {
                a_new_agent_is_found_as_it_was_given
                an_agent_exists_once_per_tenant
                versions_follow_each_other
                a_stale_version_is_refused
                archived_agents_are_left_out_and_can_come_back
                agents_of_another_tenant_do_not_exist
                pages_are_stable_while_agents_are_added
                versions_are_listed_in_pages
                cursors_of_other_listings_are_refused
            }
            sessions {
                a_new_session_is_found_as_it_was_given
                a_session_exists_once
                an_imported_session_comes_with_its_log_or_not_at_all
                a_deleted_session_takes_its_log_with_it
                a_deleted_session_frees_its_id
                sessions_of_another_tenant_do_not_exist
                running_sessions_are_found_in_all_tenants
                sessions_that_wait_for_a_time_are_found_in_the_order_of_their_times
            }
            session_pages {
                sessions_are_listed_newest_first
                sessions_are_listed_oldest_first_and_counted
                filters_narrow_the_list
                metadata_is_matched_by_its_text
                metadata_keys_may_contain_anything
                archived_sessions_are_listed_on_request
                pages_are_stable_while_sessions_are_added
                pages_split_sessions_of_the_same_moment
                filters_hold_on_every_page
                invented_cursors_are_refused
            }
            log {
                appended_events_are_read_as_they_were_given
                a_log_has_no_gaps
                the_view_is_replaced
                a_part_of_a_log_is_read_in_either_order
                events_that_are_read_at_once_are_bounded_in_bytes
                events_are_found_by_type
                what_changes_other_events_is_found_by_itself
                user_events_are_taken_up_once
                an_event_may_take_up_another_of_the_same_append
                the_newest_checkpoint_counts
                a_session_is_woken_with_what_came_after_its_checkpoint
                a_session_that_is_gone_has_no_events
            }
            log_writers {
                a_stale_writer_is_refused_and_leaves_nothing
                a_session_that_is_gone_cannot_be_written
                misnumbered_events_are_refused
                many_sessions_are_written_at_the_same_time
                of_two_writers_exactly_one_wins
                a_refused_write_does_not_touch_its_neighbours
            }
            keys {
                a_key_is_found_by_its_hash
                a_key_exists_once
                keys_are_listed_newest_first
                a_revoked_key_stays_revoked
            }
            grants {
                allowing_for_good_makes_a_grant
                nothing_else_makes_a_grant
                a_session_without_a_user_makes_no_grant
                a_grant_can_be_taken_back
                grants_of_all_users_are_listed
            }
            memories {
                notes_are_read_as_they_were_given
                a_stale_writer_of_notes_is_refused
                notes_belong_to_one_scope
                notes_outlive_the_sessions
            }
            skills {
                a_skill_is_read_as_it_was_given
                a_change_of_a_skill_is_whole
                a_stale_writer_of_a_skill_is_refused
                skills_belong_to_one_scope
                a_deleted_skill_takes_its_files_with_it
            }
            customers {
                a_customer_is_found_as_it_was_given
                a_customer_exists_once_per_tenant
                a_change_of_a_customer_is_whole
                a_deleted_customer_takes_what_is_known_with_it
                customers_are_listed_in_pages_either_way_round
                what_is_known_is_set_read_and_forgotten
                variables_belong_to_one_tenant
                tags_go_from_whatever_bears_them
                a_turn_is_told_what_is_most_particular
            }
            routines {
                a_routine_is_read_as_it_was_given
                a_routine_that_changes_stays_as_old_as_it_is
                routines_belong_to_a_tenant
            }
            runs {
                a_run_comes_with_its_session_and_once_for_a_key
                a_run_moves_on_with_its_log
                a_run_that_does_not_wait_cannot_start
                runs_are_found_by_what_they_wait_for
                sessions_that_were_made_for_a_run_are_left_over
                runs_are_listed_newest_first_in_pages
            }
            usage {
                model_calls_are_counted_by_day
                usage_belongs_to_one_agent_and_outlives_its_sessions
                an_imported_session_was_paid_for_elsewhere
            }
            deliveries {
                a_delivery_comes_with_its_event_or_not_at_all
                deliveries_are_listed_newest_first
                filters_narrow_the_list_of_deliveries
                deliveries_of_another_tenant_do_not_exist
                attempts_are_recorded
                settled_deliveries_can_be_forgotten
                a_dead_callback_is_kept_while_it_is_the_newest_of_its_run
                deliveries_outlive_their_session
            }
            delivery_order {
                only_the_first_of_a_session_is_due
                a_failed_delivery_holds_up_its_session_and_nobody_else
                a_dead_delivery_lets_the_next_one_go
                what_a_clock_put_off_that_was_ahead_is_due
                busy_lanes_are_left_out
                failed_deliveries_do_not_take_the_places_of_new_ones
                callbacks_and_repeated_deliveries_wait_for_nothing
                undelivered_events_can_be_moved
                undelivered_events_can_be_cancelled
                what_was_moved_is_not_given_up_for_the_old_place
            }
            recovery {
                the_end_of_a_start_is_what_it_said_last
                records_of_work_are_read_as_they_were_given
                a_turn_is_found_where_it_last_made_progress
                a_delivery_is_found_while_it_is_due_and_moves_on_with_its_attempts
            }
            search {
                a_message_is_found_as_soon_as_it_is_appended
                words_are_matched_by_what_they_mean
                a_search_sees_one_scope
                a_search_can_be_narrowed_and_ordered
                a_deleted_session_is_not_found
                very_many_messages_are_found
            }
        }
    };
    (@tests $open:path; $($module:ident { $($check:ident)* })*) => {
        $(mod $module {
            $(#[tokio::test]
            async fn $check() {
                let (store, _guard) = $open().await;
                $crate::suite::$module::$check(&store).await;
            })*
        })*
    };
}
