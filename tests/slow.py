"""Which tests ``make test`` leaves to ``make test-all``, and which both leave to ``test-long``.

Files are named without their folder: no two have the same name. Most behaviours keep a quick test;
some that need a browser, workers, a server or a kill have none. How often a test tries, kills or
draws depends on the same commands: see examples.py, and ``make faults``.
"""

import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest

# Processes killed again and again, races, a fuzzer of the whole service, and much of the
# inspector's page in a browser.
FILES = {
    "test_effect_folders.py",
    "test_http_schema.py",
    "test_kill.py",
    "test_law_classes.py",
    "test_load.py",
    "test_mcp_inspector.py",
    "test_mem0_differential.py",
    "test_more_law_classes.py",
    "test_note_kills.py",
    "test_note_races.py",
    "test_page_commands.py",
    "test_page_compares.py",
    "test_page_explains.py",
    "test_page_pointer.py",
    "test_page_sweeps.py",
    "test_page_texts.py",
    "test_page_words.py",
    "test_plain_install.py",
    "test_reembed_kill.py",
    "test_run_kill.py",
    "test_spread_commands.py",
    "test_spread_disk.py",
    "test_spread_kills.py",
    "test_spread_over_ray.py",
    "test_spread_policies.py",
    "test_sweep_over_ray.py",
    "test_telling_kills.py",
    "test_telling_runs_law.py",
    "test_temperature_kills.py",
}

# Their cases start a process, fill a disk or write a store each: the first case of a test is quick.
FILES_OF_CASES = {
    "test_bank_commands.py",
    "test_bombs.py",
    "test_checkpoint_damage.py",
    "test_clock_kills.py",
    "test_cost_per_agent.py",
    "test_doctor_diagnoses.py",
    "test_exchange_commands.py",
    "test_exchange_mem0.py",
    "test_exchange_refused.py",
    "test_flush_in_runs.py",
    "test_http_hostile.py",
    "test_import_name.py",
    "test_interrupted_caches.py",
    "test_leftovers.py",
    "test_log_damage.py",
    "test_preset_runs.py",
    "test_merge_of_strangers.py",
    "test_mesa_processes.py",
    "test_new_user.py",
    "test_note_growth.py",
    "test_process.py",
    "test_serve_command.py",
    "test_split_worlds.py",
    "test_spread_runs.py",
    "test_store_damage.py",
    "test_store_process.py",
    "test_stored.py",
    "test_vacuum_faults.py",
}

# By file: tests whose behaviour a cheaper test shows as well.
TESTS = {
    "test_analyse_command.py": {"test_out_writes_all_tables_and_plots_once"},
    "test_async_bank.py": {"test_type_checkers_know_the_methods"},
    "test_benchmarks_run.py": {"test_it_runs"},
    "test_bombs.py": {
        "test_a_checkpoint_has_no_more_bytes_than_its_file",
        "test_lines_without_an_end_take_little_memory",
    },
    "test_bounds.py": {
        "test_the_tokenizer_keeps_no_texts",
        "test_the_words_of_the_offline_embedder_are_bounded",
    },
    "test_branch_and_diff_commands.py": {
        "test_a_branch_can_be_branched",
        "test_diff_compares_runs_of_different_length_at_their_last_common_tick",
        "test_diff_draws_a_plot",
    },
    "test_chaos.py": {"test_a_minute_of_faults_breaks_no_law", "test_a_round_of_kills_holds"},
    "test_checkpoint_damage.py": {
        "test_a_checkpoint_restored_elsewhere_makes_a_store_of_its_own",
        "test_a_checkpoint_that_was_cut_short_is_refused_or_has_lost_nothing",
        "test_a_flipped_bit_is_refused_or_changes_nothing",
        "test_a_full_disk_in_a_tick_is_a_clear_error_and_the_run_goes_on_later",
        "test_a_restored_bank_that_goes_on_keeps_its_store_exact",
        "test_restoring_sets_mem0s_store_right",
    },
    "test_clock_commands.py": {"test_doctor_says_that_the_clock_is_behind_and_what_to_do"},
    "test_cold_recall.py": {
        "test_a_store_that_is_gone_names_the_repair_which_brings_the_cold_back",
        "test_what_was_forgotten_is_in_no_file_after_a_vacuum",
    },
    "test_concordia_memory_bank.py": {
        "test_a_restore_in_a_new_process_gives_no_duplicates",
    },
    "test_damaged_pages.py": {"test_damage_on_any_page_is_named"},
    "test_demo.py": {
        "test_a_run_of_the_demo_gives_the_same_again",
        "test_the_readmes_numbers_are_those_of_a_fresh_run",
    },
    "test_doctor_command.py": {
        "test_a_damaged_store_names_the_repair",
        "test_a_journal_made_from_a_checkpoint_is_sound",
        "test_a_memory_that_was_taken_out_of_the_store_is_a_problem",
        "test_a_store_of_another_bank_is_a_problem",
        "test_an_embedder_that_fails_is_a_problem",
        "test_it_says_who_has_the_bank_open",
    },
    "test_doctor_diagnoses.py": {
        "test_a_bank_that_may_not_be_written_is_a_problem",
        "test_a_journal_that_may_not_be_read_is_not_damaged",
        "test_a_store_that_may_not_be_written_is_not_damaged",
    },
    "test_documents.py": {"test_the_page_on_testing_is_a_program_that_passes_and_fails_as_it_says"},
    "test_effect_command.py": {
        "test_memories_that_mattered_are_sought_with_a_language_model",
        "test_only_prompts_that_changed_are_asked_again",
        "test_what_is_said_of_a_missing_answer_names_no_folder_that_is_gone",
    },
    "test_effects.py": {
        "test_a_memory_is_pinned_and_settings_are_changed",
        "test_a_seed_without_the_memory_is_left_out_and_named",
        "test_an_insight_that_never_comes_to_mind_is_in_no_memory",
        "test_of_two_equal_memories_the_one_that_is_named_is_forgotten",
        "test_over_futures_and_over_seeds",
        "test_equal_effects_in_all_futures_have_no_interval",
    },
    "test_effects_of_questions.py": {
        "test_a_blocked_post_is_the_same_on_workers_and_in_a_replay",
        "test_what_one_posts_does_not_reach_the_other",
    },
    "test_few_files.py": {"test_every_call_works_or_says_what_is_wrong"},
    "test_file_modes.py": {
        "test_a_run_that_is_inspected_and_analysed_stays_private",
        "test_a_sweep_is_private",
    },
    "test_flush_in_runs.py": {
        "test_a_model_may_have_nothing_to_save",
        "test_a_model_saves_with_actions",
        "test_a_whole_run_with_a_model_replays_when_the_model_is_gone",
        "test_silence_is_no_answer_to_the_usual_question",
    },
    "test_http_fairness.py": {
        "test_a_client_does_not_wait_for_the_length_of_anothers_note",
        "test_a_long_answer_may_be_read_slowly",
        "test_an_answer_that_nobody_reads_is_cut_off",
        "test_idle_connections_leave_the_bank_the_files_it_needs",
    },
    "test_http_limits.py": {"test_what_takes_too_long_is_given_up_and_others_are_served"},
    "test_hybrid_cold.py": {"test_a_reopened_bank_finds_what_is_cold_as_the_live_one_did"},
    "test_import_name.py": {
        "test_a_run_and_a_sweep_of_code_that_has_its_own_agents",
        "test_a_run_of_code_that_imports_tiermem_by_its_other_name",
        "test_a_strict_type_checker_knows_the_names",
        "test_the_store_is_probed_and_rebuilt",
        "test_the_wheel_has_no_file_that_a_package_agents_could_have",
    },
    "test_inspect_command.py": {"test_a_report_links_to_an_inspector_beside_it"},
    "test_inspector_boards.py": {"test_the_page_tells_a_board_from_an_agent"},
    "test_inspector_compares.py": {
        "test_a_sweep_is_a_grid_whose_points_lead_to_runs",
        "test_the_page_says_how_many_memories_are_not_listed",
    },
    "test_inspector_effects.py": {"test_the_page_leads_from_a_run_to_what_a_change_did"},
    "test_inspector_follows.py": {"test_a_bank_is_followed_while_its_tick_stands_still"},
    "test_inspector_memory.py": {
        "test_the_stages_of_one_agent_are_bounded_and_every_tick_is_reached"
    },
    "test_inspector_other_banks.py": {
        "test_the_answers_are_those_of_the_bank",
        "test_the_page_shows_agent_memory_and_search",
    },
    "test_journal_damage.py": {"test_no_flipped_byte_of_the_file_changes_a_memory_unnoticed"},
    "test_keys.py": {"test_mem0s_store_has_the_successor_alone"},
    "test_leftovers.py": {"test_a_process_that_ends_leaves_nothing_nor_does_that_of_its_store"},
    "test_log_damage.py": {"test_a_kill_while_the_records_are_written_leaves_a_bank_that_opens"},
    "test_many_agents.py": {
        "test_a_tick_that_is_undone_wakes_nobody",
        "test_an_agent_that_nobody_looks_at_is_no_object",
    },
    "test_mcp_clock.py": {"test_the_command_serves_a_bank_whose_time_passes"},
    "test_mcp_command.py": {
        "test_a_client_that_is_gone_ends_it_and_loses_nothing",
        "test_a_client_that_reads_no_answers_can_still_end_it",
        "test_a_last_line_without_an_end_is_a_message",
        "test_killed_it_loses_nothing_acknowledged",
        "test_read_only_offers_only_what_reads",
        "test_the_end_does_not_wait_for_a_request_that_was_cancelled",
    },
    "test_mcp_http.py": {
        "test_no_body_breaks_the_server",
        "test_what_was_answered_before_the_end_is_kept",
    },
    "test_mcp_http_limits.py": {"test_who_is_asking_when_it_stops_is_told_so"},
    "test_mem0_facade.py": {"test_an_update_keeps_the_id_and_all_versions_lead_to_it"},
    "test_mem0_store.py": {
        "test_another_banks_store_is_an_error_and_repair_keeps_it",
        "test_many_memories_are_written_in_batches",
    },
    "test_mesa_documents.py": {"test_the_program_runs_and_traders_refuse_cheats"},
    "test_mesa_processes.py": {
        "test_a_killed_model_has_all_its_whole_steps",
        "test_the_same_seed_gives_the_same_hash_in_every_process",
    },
    "test_mesa_runs.py": {
        "test_a_run_that_nobody_closed_has_a_report",
        "test_diff_tells_where_two_runs_part",
        "test_grateful_agents_give_to_those_who_gave",
    },
    "test_note_history.py": {"test_a_run_that_appends_is_replayed_from_any_tick_and_branched"},
    "test_note_watching.py": {"test_a_change_waits_for_what_follows_it"},
    "test_package.py": {"test_a_bank_works_from_the_wheel_alone"},
    "test_page.py": {
        "test_a_branch_is_written_as_a_command_with_its_edits",
        "test_a_click_leads_from_an_event_to_the_memory_and_from_it_to_the_decision",
        "test_a_click_on_the_map_opens_the_agent_in_that_tick",
        "test_edits_are_kept_at_their_tick_while_the_cursor_is_elsewhere",
        "test_every_view_fits_a_larger_window",
        "test_every_view_fits_a_narrow_window",
        "test_every_view_opens_by_its_address",
        "test_every_way_from_a_view_and_back_keeps_the_agent",
        "test_keys_buttons_field_line_and_play_move_the_cursor",
        "test_keys_change_agent_view_and_search",
        "test_light_and_dark_and_keys_for_help",
        "test_numbers_are_those_of_the_python_api",
        "test_space_plays_with_the_chosen_speed",
        "test_the_life_of_a_memory_is_that_of_the_python_api",
    },
    "test_page_runs.py": {
        "test_a_bank_is_followed_while_its_tick_stands_still",
        "test_a_long_table_draws_the_rows_in_sight",
        "test_a_sweep_is_a_grid_that_leads_to_its_runs_and_back",
        "test_agents_of_the_circle_are_chosen_and_opened_by_keys",
        "test_an_exported_file_has_the_same_views",
        "test_an_unfinished_run_is_followed",
        "test_edits_stay_while_an_unfinished_run_goes_on",
        "test_the_events_of_a_tick_are_shown_page_by_page",
        "test_the_page_runs_a_branch_and_compares",
        "test_the_population_shows_who_brought_a_belief_to_whom",
        "test_two_runs_are_compared_from_where_they_part",
        "test_what_agents_have_in_common_is_shown_page_by_page",
    },
    "test_planted_bugs.py": {
        "test_a_bug_that_other_processes_show_breaks_a_law",
        "test_pytest_finds_the_laws_and_names_the_broken_one",
    },
    "test_policy_llm.py": {
        "test_a_hanging_reply_times_out_and_nobody_asks_again_behind_our_back",
        "test_a_late_reply_is_not_taken_for_that_of_another_attempt",
    },
    "test_process.py": {
        "test_a_store_is_not_damaged_because_chromadb_is_missing",
        "test_the_doctor_goes_on_without_a_package",
    },
    "test_reembed.py": {"test_mem0s_store_is_made_anew"},
    "test_reflection.py": {"test_a_run_that_stops_and_goes_on_reflects_as_one_that_does_not"},
    "test_report.py": {
        "test_drawing_uses_no_global_figures_and_prints_nothing_even_without_a_home"
    },
    "test_restore_races.py": {"test_one_of_two_restores_wins_and_the_other_is_refused"},
    "test_results_page.py": {"test_the_page_agrees_with_a_fresh_run"},
    "test_retention.py": {
        "test_a_vacuum_writes_no_leftovers_of_the_processs_memory_to_mem0s_store",
    },
    "test_run_command.py": {
        "test_a_run_that_was_interrupted_by_quick_presses_becomes_the_same_run",
        "test_the_market_runs_as_it_is_shipped",
    },
    "test_run_laws.py": {
        "test_a_later_tick_of_a_restored_bank_looks_as_it_was_or_is_refused",
        "test_an_earlier_tick_looks_as_it_was",
        "test_runs_of_processes_with_other_hash_seeds_are_equal",
        "test_the_hash_that_was_kept_up_equals_one_computed_afresh",
    },
    "test_run_recovery.py": {"test_a_journal_that_is_only_busy_is_not_replaced_by_a_checkpoint"},
    "test_serve_command.py": {
        "test_a_second_signal_waits_for_no_operation",
        "test_killed_it_still_has_what_it_acknowledged",
    },
    "test_server_store.py": {
        "test_a_plain_mem0_reads_what_is_on_the_server",
        "test_a_run_goes_on_while_its_server_is_away",
        "test_a_run_that_goes_on_gets_its_password_again",
        "test_a_server_that_goes_away_is_caught_up_with",
        "test_a_server_that_is_emptied_is_filled_again",
        "test_no_file_log_or_error_has_the_password",
        "test_what_is_added_changed_and_deleted_is_on_the_server",
    },
    "test_service_bounds.py": {"test_sessions_of_mcp_that_are_left_are_not_kept"},
    "test_split_worlds.py": {
        "test_a_split_run_goes_on_with_another_number_of_workers",
        "test_a_world_that_breaks_its_promise_is_told",
        "test_the_world_of_the_page_keeps_its_promise",
    },
    "test_spread_groups.py": {
        "test_a_run_with_groups_goes_on_with_other_workers_and_lost_cells",
        "test_the_laws_of_worlds_ask_each_region_who_may_join",
        "test_worlds_that_split_and_boards_that_fade_are_the_same",
    },
    "test_spread_laws.py": {
        "test_a_run_has_the_same_hashes_after_every_tick_on_two_and_three_workers",
        "test_random_worlds_have_the_same_hashes_after_every_tick_with_any_workers",
    },
    "test_spread_runs.py": {
        "test_a_cell_that_is_behind_is_brought_up_from_the_log",
        "test_a_cell_that_is_lost_is_made_anew_from_the_bank_and_the_log",
        "test_a_disk_that_is_full_under_the_log_fails_the_tick_whole",
        "test_a_merge_is_a_copy_with_one_bank",
        "test_a_worker_that_is_killed_before_it_decides_costs_only_the_tick",
        "test_readers_see_all_ticks_of_a_run_that_was_not_finished",
        "test_the_shipped_worlds_are_the_same_too",
    },
    "test_storage_laws.py": {"test_scores_of_a_large_agent_equal_exact_arithmetic"},
    "test_store_damage.py": {
        "test_open_names_the_repair_and_the_repair_rebuilds_the_store",
        "test_repairing_a_sound_store_replaces_it",
        "test_the_command_says_what_it_found_and_did",
    },
    "test_store_process.py": {
        "test_a_full_disk_under_the_store_ends_in_an_error_and_the_bank_goes_on",
        "test_a_store_that_does_not_answer_is_given_up_and_caught_up_later",
        "test_the_process_of_a_store_ends_with_the_process_of_its_bank",
        "test_two_processes_never_write_one_store",
    },
    "test_stored.py": {"test_an_import_whose_store_fails_is_done_and_says_so"},
    "test_sweep_command.py": {
        "test_a_grid_may_hold_values_of_any_kind",
        "test_a_policy_that_raises_fails_its_cell_only",
        "test_a_preset_beats_the_scenario_of_every_cell_and_the_grid_beats_the_preset",
        "test_a_sweep_that_somebody_runs_is_left_alone",
        "test_a_sweep_whose_code_has_changed_is_not_mixed_with_the_old_one",
        "test_a_variant_may_be_named_as_the_baseline",
        "test_ctrl_c_ends_a_sweep_which_then_goes_on",
        "test_kept_runs_do_not_count_for_the_pace_of_a_sweep",
        "test_more_seeds_go_on_with_what_is_there",
        "test_points_of_a_grid_are_compared_with_the_baseline_by_seed",
        "test_runs_that_are_kept_whole_are_linked_and_have_the_scenarios_checkpoints",
        "test_statistics_have_the_evidence_of_each_difference",
        "test_without_a_baseline_the_first_point_of_the_grid_is_it",
    },
    "test_sweep_workers.py": {
        "test_a_cell_whose_worker_is_always_killed_is_named_and_the_others_count",
        "test_a_cell_whose_worker_is_killed_once_is_run_again",
        "test_workers_end_with_a_command_that_is_ended",
    },
    "test_sweeps.py": {
        "test_results_have_all_metrics_whichever_run_ends_first",
    },
    "test_vacuum_faults.py": {
        "test_a_vacuum_names_the_journal_that_another_program_reads",
        "test_a_vacuum_that_was_killed_is_begun_again_by_itself",
    },
    "test_why_command.py": {"test_a_run_of_before_says_that_decisions_were_not_kept"},
    "test_world_commands.py": {
        "test_a_new_world_runs_is_tested_and_is_sound_as_it_is",
        "test_a_scenario_gives_agents_and_options",
        "test_a_world_that_draws_for_all_agents_from_one_stream_is_warned_of",
        "test_a_world_that_draws_for_each_agent_from_its_own_stream_is_sound",
        "test_a_world_that_is_not_sound_is_told_why",
        "test_problems_are_json_on_request",
        "test_the_built_in_worlds_are_sound",
    },
    "test_world_market.py": {
        "test_pins_that_fill_the_context_shut_out_the_warning_that_was_asked_for"
    },
    "test_world_rumor.py": {"test_critical_corrections_make_answers_truer"},
    "test_world_site.py": {
        "test_blockers_in_front_save_days",
        "test_builders_who_recall_are_right_and_others_guess",
    },
}

# By file: slow tests that only `make test-long` runs, with the id of a case or of all. Figures of
# pages change only with what they are about; benchmarks tell no behaviour, and a quick test knows
# what they import; other cases repeat what a slow one shows.
LONG = {
    "test_async_bank.py": {"test_type_checkers_know_the_methods"},
    "test_documents.py": {
        "test_the_page_on_testing_is_a_program_that_passes_and_fails_as_it_says",
    },
    "test_doctor_diagnoses.py": {
        "test_a_journal_that_may_not_be_read_is_not_damaged",
        "test_a_store_that_may_not_be_written_is_not_damaged",
    },
    "test_mesa_processes.py": {"test_the_same_seed_gives_the_same_hash_in_every_process"},
    "test_process.py": {"test_a_store_is_not_damaged_because_chromadb_is_missing"},
    "test_run_laws.py": {"test_runs_of_processes_with_other_hash_seeds_are_equal"},
    "test_spread_kills.py": {"test_any_process_may_be_killed_at_any_instant"},
    "test_store_damage.py": {"test_the_command_says_what_it_found_and_did"},
    "test_telling_runs_law.py": {
        "test_a_run_of_random_boards_is_the_same_resumed_branched_and_replayed",
    },
    "test_chaos.py": {"test_a_minute_of_faults_breaks_no_law"},
    "test_http_fairness.py": {"test_idle_connections_leave_the_bank_the_files_it_needs"},
    "test_benchmarks_run.py": {"test_it_runs"},
    "test_demo.py": {"test_the_readmes_numbers_are_those_of_a_fresh_run"},
    "test_load.py": {
        "test_clients_and_hostile_clients_lose_nothing_and_get_no_error_of_the_server",
    },
    "test_import_name.py": {
        f"{test}[checkout]"
        for test in (
            "test_a_run_and_a_sweep_of_code_that_has_its_own_agents",
            "test_the_store_is_probed_and_rebuilt",
        )
    }
    | {"test_a_strict_type_checker_knows_the_names"},
    "test_results_page.py": {"test_the_page_agrees_with_a_fresh_run"},
    "test_telling_laws.py": {"test_nobody_reads_what_it_was_not_told[100000]"},
}

# By file: tests of which the first case is quick.
TESTS_OF_CASES = {
    "test_damaged_pages.py": {
        "test_a_damaged_page_under_cold_memories_is_named",
        "test_a_refused_opening_changes_no_file",
        "test_no_damage_to_an_index_hides_a_memory",
        "test_whole_commits_give_back_everything",
    },
    "test_forget_kill.py": {
        "test_a_bank_opens_after_a_process_that_emptied_its_store_and_did_not_close_it"
    },
    "test_group_actions.py": {"test_a_run_with_groups_is_the_same_resumed_branched_and_replayed"},
    "test_hostile_arguments.py": {"test_it_is_one_clear_error_and_nothing_is_changed"},
    "test_http_access.py": {"test_no_attempt_of_one_agent_reaches_another"},
    "test_inspector_damage.py": {"test_an_export_has_what_is_whole_and_says_what_is_not"},
    "test_mcp_command.py": {"test_a_request_with_text_that_is_not_unicode_is_answered_by_its_id"},
    "test_mcp_http.py": {"test_no_attempt_reaches_the_others_memory"},
    "test_notes_of_runs.py": {"test_a_model_is_told_of_notes_where_it_may_write_them"},
    "test_planted_bugs.py": {"test_a_bug_breaks_a_law_that_the_message_names"},
    "test_resume_command.py": {"test_code_that_imports_its_neighbour_goes_on_in_a_new_process"},
    "test_run_command.py": {"test_a_signal_stops_a_real_process_between_two_ticks"},
    "test_spread_refusals.py": {
        "test_a_tick_that_can_not_be_remembered_did_not_happen_and_the_mended_run_goes_on"
    },
    "test_study.py": {"test_it_has_the_memories_that_the_bank_had_after_each_tick"},
    "test_sweep_workers.py": {"test_ctrl_c_at_any_moment_ends_a_sweep_without_a_traceback"},
    "test_telling.py": {"test_a_long_chain_is_followed_to_its_origin"},
    "test_telling_laws.py": {
        "test_a_bank_of_tells_goes_back_and_branches_bit_for_bit",
        "test_nobody_reads_what_it_was_not_told",
    },
    "test_world_commands.py": {"test_a_world_that_is_not_sound_is_told_why"},
}

# Files of which every test is long: laws over more of what is ours, and a fuzzer of the service.
LONG_FILES = {"test_http_schema.py", "test_more_law_classes.py"}

# By test: how many of its cases `make test-all` runs. Each costs a second or more of the processor,
# and they differ in a moment, a size or a preset; `make test-long` runs the others.
CASES = {
    "test_a_bank_that_may_not_be_written_is_a_problem": 1,
    "test_a_bug_that_other_processes_show_breaks_a_law": 2,
    "test_a_command_imports_what_it_needs": 2,
    "test_a_damaged_page_under_cold_memories_is_named": 1,
    "test_a_full_disk_under_the_store_ends_in_an_error_and_the_bank_goes_on": 1,
    "test_a_killed_process_leaves_whole_steps_of_the_clock": 3,
    "test_a_line_costs_the_same_in_a_long_note_as_in_a_short_one": 4,
    "test_a_missing_package_is_named_with_the_way_to_get_it": 3,
    "test_a_model_is_asked_once_and_its_answers_are_kept": 1,
    "test_a_run_goes_on_while_its_server_is_away": 2,
    "test_a_run_has_the_same_records_and_results_on_any_number_of_workers": 3,
    "test_a_run_that_was_interrupted_by_quick_presses_becomes_the_same_run": 1,
    "test_a_tick_whose_cells_can_not_be_written_is_done_once_there_is_room": 2,
    "test_a_vacuum_that_was_killed_is_begun_again_by_itself": 2,
    "test_a_world_that_breaks_its_promise_is_told": 1,
    "test_a_world_that_is_not_sound_is_told_why": 2,
    "test_ctrl_c_at_any_moment_ends_a_sweep_without_a_traceback": 2,
    "test_damage_on_any_page_is_named": 2,
    "test_it_is_one_clear_error_and_nothing_is_changed": 14,
    "test_killed_at_random_moments_it_is_the_run_that_nobody_killed": 1,
    "test_killed_in_the_middle_of_a_tick_it_is_the_run_that_nobody_killed": 1,
    "test_open_names_the_repair_and_the_repair_rebuilds_the_store": 2,
    "test_openai_agents_and_tiermem_work_in_one_process": 3,
    "test_parquet_unpacks_to_a_bounded_size": 2,
    "test_presets_that_move_memories_give_the_same_run": 2,
    "test_random_calls_give_the_same_as_mem0": 4,
    "test_regions_give_the_bytes_of_one_process": 2,
    "test_scores_of_a_large_agent_equal_exact_arithmetic": 10,
    "test_so_does_a_line_after_a_long_row_of_headings": 2,
    "test_the_built_in_worlds_are_sound": 1,
    "test_the_rumour_mill_is_the_same_resumed_branched_and_replayed": 2,
    "test_the_shipped_worlds_are_the_same_too": 3,
    "test_whichever_name_comes_first_the_objects_are_the_same": 2,
}

# What `make test-all` runs again, with more examples.
AGAIN = {"test_bank_machine.py"}

# Stores beside the default one, by the id of the case.
STORES = {"qdrant"}


def may_be_wanted(file: Path) -> bool:
    """Whether a file may have a test which is slow and not long, or is run again."""
    if file.name in LONG_FILES:
        return False
    named = FILES.union(FILES_OF_CASES, TESTS, TESTS_OF_CASES, AGAIN)
    return file.name in named or any(store in file.read_text("utf-8") for store in STORES)


def mark(items: Iterable[pytest.Item]) -> None:
    """Mark what is slow, and what is long.

    Cases of a test come one after the other, as they are written.
    """
    seen: Counter[tuple[str, str]] = Counter()
    for item in items:
        file, test = item.path.name, getattr(item, "originalname", item.name)
        of_cases = file in FILES_OF_CASES or test in TESTS_OF_CASES.get(file, ())
        number = seen[file, test]
        is_slow = (
            file in FILES
            or test in TESTS.get(file, ())
            or (of_cases and number > 0)
            or bool(STORES & set(_ids(item)))
        )
        is_long = (
            file in LONG_FILES
            or not LONG.get(file, set()).isdisjoint((item.name, test))
            or number >= CASES.get(test, sys.maxsize)
        )
        seen[file, test] += 1
        if file in AGAIN:
            item.add_marker(pytest.mark.again)
        if is_slow or is_long:
            item.add_marker(pytest.mark.slow)
        if is_long:
            item.add_marker(pytest.mark.long)


def _ids(item: pytest.Item) -> list[str]:
    """The ids of a case's parameters."""
    return (
        item.callspec.id.split("-")
        if isinstance(item, pytest.Function) and hasattr(item, "callspec")
        else []
    )
