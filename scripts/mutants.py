#!/usr/bin/env python3
"""Breaks the program on purpose, one way at a time, and asks the tests whether they notice.

Each mutant is a small edit of one file and the test that must go red. The project is copied to a temporary folder,
so the working tree is never touched. Prints a table; exit code 1 if a mutant survives or does not compile.

    scripts/mutants.py              all mutants
    scripts/mutants.py floor nan    those whose name contains one of these words

`scripts/mutants_sample.py --named WORD …` does the same for those within a function, all of them in one build.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WEIGHTS = "src/process/weights.rs"
STEP = "src/model/gmm/step.rs"
EM = "src/model/gmm/em.rs"
KEPT = "src/kernel/sparse/kept.rs"
TREE = "src/bayes/nuts/tree.rs"
TREE_TESTS = "bayes::nuts::tree::tests"
KEPT_TESTS = "kernel::sparse::kept::tests"

# Name, file, old text, new text, file of tests (or lib), test.
MUTANTS = [
    ("uniform variates instead of exponentials", "src/kernel/exponentials.rs",
     "uniform::<V>(next(state)).minus_ln()", "uniform::<V>(next(state))",
     "weights", "a_data_weight_is_beta_with_one_part_of_the_mass"),
    ("whole-number weights, as a resampling bootstrap has", WEIGHTS,
     "kernel::exponentials(Level::current(), &generators, out)\n",
     "kernel::exponentials(Level::current(), &generators, out);\n"
     "    out.iter_mut().for_each(|g| *g = g.ceil());\n    out.iter().sum()\n",
     "functionals", "the_bayesian_bootstrap_mean_has_rubins_four_moments"),
    ("alpha instead of alpha/T", WEIGHTS,
     "log_gamma_variate(alpha / t as f64, rng)", "log_gamma_variate(alpha, rng)",
     "weights", "squared_weights_sum_to_what_each_truncation_promises"),
    ("pseudo-samples shared by all draws", "src/process/mod.rs",
     "seed.stream(Purpose::PseudoSamples, draw, 0)", "seed.stream(Purpose::PseudoSamples, 0, 0)",
     "functionals", "finitely_many_pseudo_samples_inflate_the_variance_by_a_known_amount"),
    ("prior dropped", WEIGHTS,
     "prior.iter_mut().for_each(|v| *v /= total);", "prior.iter_mut().for_each(|v| *v = 0.0);",
     "functionals", "truncated_sticks_inflate_the_variance_by_a_known_amount"),
    ("a loss of rows forgets pseudo-samples that are observed rows", "src/process/mod.rs",
     "picked.iter().zip(&f.v).for_each(|(&row, v)| mass[row] += v);", "let _ = (picked, &mut mass);",
     "measure", "the_loss_of_a_measure_is_that_of_its_atoms_written_out"),
    ("a loss of rows forgets pseudo-samples with rows of their own", "src/process/mod.rs",
     "let others = self.mass.is_none().then(|| (self.pseudo_rows(), &self.v[..]));",
     "let others = false.then(|| (self.pseudo_rows(), &self.v[..]));",
     "measure", "the_loss_of_a_measure_is_that_of_its_atoms_written_out"),
    ("a regression forgets the responses of relabelled rows", "src/process/mod.rs",
     "observed.response[part.row_number(k)] += v * responses(k);", "let _ = (k, v, &responses);",
     "measure", "the_loss_of_a_measure_is_that_of_its_atoms_written_out"),
    ("a regression forgets the mass of historical rows", "src/process/mod.rs",
     "            mass[part.row_number(k)] += v;\n", "            mass[part.row_number(k)] += 0.0 * v;\n",
     "measure", "the_loss_of_a_measure_is_that_of_its_atoms_written_out"),
    ("two draws share a stream", "src/rng.rs",
     "[self.0, purpose as u64, draw, part]", "[self.0, purpose as u64, draw / 2, part]",
     "weights", "draws_and_seeds_share_nothing"),
    ("chunks of rows share a stream", WEIGHTS,
     "Generators::seeded(&mut seed.stream(Purpose::Weights, draw, chunk))",
     "Generators::seeded(&mut seed.stream(Purpose::Weights, draw, 0 * chunk))",
     "weights", "weights_in_different_chunks_are_dirichlet_together"),
    ("mixture variance stored as standard deviation", EM,
     "(scatter / count + self.added).max(self.floor)", "(scatter / count).sqrt().max(self.floor)",
     "mixture", "every_em_step_keeps_mean_and_second_moment"),
    ("the last restart wins", "src/restarts.rs",
     "        if takes {", "        if takes || r > 0 {",
     "mixture", "more_restarts_never_end_higher"),
    ("NaN wins", "src/optim/mod.rs",
     "(true, _) => false,", "(true, _) => true,",
     "invariance", "a_broken_restart_never_wins"),
    ("median averaged over two atoms", "src/model/quantile.rs",
     "    select(&mut atoms, q * total)\n",
     "    let low = select(&mut atoms, q * total);\n"
     "    let high = atoms.iter().map(|a| a.0).filter(|v| *v > low).fold(f64::INFINITY, f64::min);\n"
     "    if high.is_finite() { 0.5 * (low + high) } else { low }\n",
     "functionals", "a_bootstrap_quantile_picks_order_statistics_binomially"),
    ("starts sorted", "src/init.rs",
     "out.iter_mut().for_each(|e| *e = variate(dist, rng));",
     "out.iter_mut().for_each(|e| *e = variate(dist, rng));\n                    out.sort_by(f64::total_cmp);",
     "mixture", "every_order_of_the_components_is_equally_likely"),
    ("floor added instead of clamped", EM,
     "(scatter / count + self.added).max(self.floor)", "scatter / count + self.floor",
     "mixture", "em_never_raises_the_objective"),
    ("M step variance about the old mean", EM,
     "(em[1 + d + j] / em[0] - shift * shift).max(0.0)", "(em[1 + d + j] / em[0]).max(0.0)",
     "mixture", "every_em_step_keeps_mean_and_second_moment"),
    ("last stick dropped", WEIGHTS,
     "    logs.push(left);\n    logs\n}\n\n/// GEM(α) until", "    logs\n}\n\n/// GEM(α) until",
     "weights", "the_prior_mass_is_beta_alpha_n_for_every_truncation"),
    ("weights not normalised", WEIGHTS,
     "*g *= scale / total", "*g *= scale",
     "weights", "weights_are_finite_and_sum_to_one_at_every_scale"),
    ("adaptive epsilon ignored", WEIGHTS,
     "+ libm::log(epsilon);", "+ libm::log(0.001 + 0.0 * epsilon);",
     "weights", "adaptive_sticks_are_poisson_many_and_leave_less_than_epsilon"),
    ("Good-Turing counts minima found twice", "src/restarts.rs",
     "filter(|&&h| h == 1)", "filter(|&&h| h <= 2)",
     "invariance", "good_turing_stops_when_few_minima_were_found_once"),
    ("penalty dropped from the objective", EM,
     "self.panel_pass(f, e_step, false, sums);\n        self.penalty(theta) - sums",
     "self.panel_pass(f, e_step, false, sums);\n        0.0 * self.penalty(theta) - sums",
     "mixture", "the_penalty_is_minus_the_log_of_an_inverse_gamma_on_each_variance"),
    ("prior mass no longer Beta(alpha, n)", WEIGHTS,
     "let mut left = log_gamma_variate(alpha, rng);\n    let mut logs",
     "let mut left = log_gamma_variate(1.0, rng);\n    let mut logs",
     "weights", "the_prior_mass_is_beta_alpha_n_for_every_truncation"),
    ("exact weights uniform over the atoms", WEIGHTS,
     "log_gamma_variate(alpha * p, rng)", "log_gamma_variate(alpha / share.len() as f64, rng)",
     "weights", "exact_weights_are_beta_at_every_atom_of_the_base_measure"),
    ("a start at infinity accepted", STEP,
     "start.iter().any(|t| !t.is_finite())", "start.is_empty()",
     "invariance", "a_search_from_nowhere_fails_and_says_so"),
    ("rescues skip restarts of an unfinished batch", "src/bootstrap.rs",
     "            first = last;\n", "            first += batch;\n",
     "invariance", "a_draw_whose_restarts_all_failed_gets_more_on_any_number_of_threads"),
    ("a case weight multiplies one exponential", WEIGHTS,
     "c.iter().map(|&c| log_gamma_variate(c, &mut rng))",
     "c.iter().map(|&c| libm::log(c) + log_gamma_variate(1.0, &mut rng))",
     "design", "a_case_weight_is_a_number_of_rows"),
    ("rows of a cluster drawn apart", WEIGHTS,
     "|(i, &k)| data.weight(i) * shared[k]", "|(i, _)| data.weight(i) * shared[i % shared.len()]",
     "design", "clusters_of_any_size_follow_the_exact_ratio_law"),
    ("strata forget the mass that the prior is weighed against", WEIGHTS,
     "Observed::new(masses, total)\n", "Observed::new(masses, total * 0.0)\n",
     "design", "strata_share_out_what_the_prior_leaves"),
    ("shares of strata by rows, not observations", "src/data/design.rs",
     "shares[s] += weight(i)", "shares[s] += weight(i).min(1.0).max(1.0)",
     "design", "strata_have_fixed_totals_and_independent_weights"),
    ("columns standardised without case weights", "src/data/prepare.rs",
     "let weights = self.design.weights();", "let weights = self.design.weights().filter(|_| false);",
     "design", "preparation_and_loss_are_those_of_repeated_rows"),
    ("a split cuts clusters", "src/study/load.rs",
     "frame.design().clusters()) {", "frame.design().clusters().filter(|_| false)) {",
     "design", "a_split_keeps_clusters_whole"),
    ("no Jacobian of a positive parameter", "src/model/transform.rs",
     "*u = t + jacobian)", "*u = *t)",
     "conventional", "gradients_are_those_of_the_densities"),
    ("all pseudo-samples of a draw from one component", "src/model/gmm/joint.rs",
     "let mut u: f64 = Open01.sample(rng);",
     "let mut u: f64 = Open01.sample(&mut crate::rng::Seed(1).stream(crate::rng::Purpose::Data, 0, 0));",
     "conventional", "the_model_at_a_draw_is_what_pseudo_samples_come_from"),
    ("draws with weight dropped", "src/bayes/importance.rs",
     "draw.filter(|_| log_weight > max - NEGLIGIBLE)", "draw.filter(|_| log_weight > max - 2.0)",
     "conventional", "only_draws_without_weight_are_dropped_and_in_the_same_way_by_any_threads"),
    ("the precisions' prior misses a half", "src/model/regression/joint.rs",
     "sum += (a - 0.5) * libm::log(*lambda)", "sum += (a - 1.0) * libm::log(*lambda)",
     "conventional", "the_marginal_prior_is_the_hierarchy_without_its_precisions"),
    ("every draw centred on the first", "src/method/mdp.rs",
     "self.at((draw % self.draws.len() as u64) as usize)", "self.at((draw % 1) as usize)",
     "conventional", "mdp_npl_of_a_mean_has_its_exact_moments"),
    ("half the entropy of the variational family", "src/bayes/advi.rs",
     "by_log_sd.iter_mut().for_each(|g| *g += 1.0);", "by_log_sd.iter_mut().for_each(|g| *g += 0.5);",
     "conventional", "advi_finds_a_normal_posterior"),
    ("case weights forgotten in a gradient", "src/model/normal.rs",
     "*slope += w * (y - t) / sigma2;", "*slope += (y - t) / sigma2;",
     "conventional", "case_weights_are_repeated_rows"),
    ("states of a trajectory are drawn whatever their weights", TREE,
     "self.happens(far.log_weight - log_add_exp(near.log_weight, far.log_weight))",
     "self.happens(-std::f64::consts::LN_2)",
     "lib", f"{TREE_TESTS}::a_transition_keeps_a_normal_target"),
    ("the new half of a trajectory is taken whatever its weight", TREE,
     "self.happens(grown.log_weight - tree.log_weight)", "self.happens(0.0)",
     "lib", f"{TREE_TESTS}::a_transition_keeps_a_target_that_is_not_normal"),
    ("turns are seen the wrong way round", TREE,
     "dot(&end.velocity, rho[1]) > 0.0", "dot(&end.velocity, rho[1]) < 0.0",
     "chains", "a_standard_normal_of_any_dimension"),
    ("a turn between the halves of a trajectory is looked for from one side", TREE,
     "            && moves_apart(&self.first, &next.first, [&self.rho, &next.first.momentum])\n", "",
     "lib", f"{TREE_TESTS}::states_turn_round_backwards_in_time_if_they_do_forwards"),
    ("no turn is looked for between the halves of a trajectory", TREE,
     "            && moves_apart(&self.first, &next.first, [&self.rho, &next.first.momentum])\n"
     "            && moves_apart(&self.last, &next.last, [&self.last.momentum, &next.rho])\n", "",
     "lib", f"{TREE_TESTS}::halves_of_a_circle_are_seen_to_be_one"),
    ("a chain keeps its momentum", "src/bayes/nuts/hamiltonian.rs",
     "let momentum = self.variances.iter().map(draw).collect();",
     "let mut draw = draw;\n        let momentum = from.momentum.iter().map(|p| if *p == 0.0 { draw(&1.0) } else { *p }).collect();",
     "chains", "a_standard_normal_of_any_dimension"),
    ("the last half of a leapfrog step is a whole one", "src/bayes/nuts/hamiltonian.rs",
     "for_each(|(p, g)| *p += half * g)", "for_each(|(p, g)| *p += epsilon * g)",
     "lib", "bayes::nuts::hamiltonian::tests::leapfrog_steps_are_reversible"),
    ("a metric never forgets", "src/bayes/nuts/metric.rs",
     "self.current = std::mem::take(&mut self.recent);", "self.recent = Spread::default();",
     "lib", "bayes::nuts::metric::tests::early_draws_are_forgotten_and_late_ones_leave_the_metric_alone"),
    ("components that singles lose are lost", EM,
     "const LEAST_MASS: f64 = 1e-20;", "const LEAST_MASS: f64 = 0.0;",
     "mixture", "searches_lose_neither_far_components_nor_close_rows"),
    ("singles for rows that they cannot tell apart", "src/kernel/mixture/precision.rs",
     "const WIDTHS: f64 = 1e4;", "const WIDTHS: f64 = 1e14;",
     "mixture", "searches_lose_neither_far_components_nor_close_rows"),
    ("sums in singles begun anew after a run", "src/kernel/mixture/precision.rs",
     "V::load(acc).add(low.add(high)).lanes()", "low.add(high).lanes()",
     "lib", "kernel::mixture::tests::singles_agree_with_doubles_to_five_digits"),
    ("the last word in singles", STEP,
     "Err(_) if rough => {", "Err(_) if false => {",
     "mixture", "the_loss_of_a_search_is_the_loss_at_its_end"),
    ("a tile of rows forgets those before it", "src/model/regression/objective.rs",
     "add(level, &seats.share, &mut trial.at.gradient[..x.d()]);", "trial.at.gradient[..x.d()].copy_from_slice(&seats.share);",
     "lib", "model::regression::objective::tests::losses_and_gradients_are_those_of_the_definition_in_both_formats"),
    ("a regression's last word in singles", "src/optim/bfgs.rs",
     "    run(level, objective, from, settings, 0.0).into_iter()",
     "    run(level, objective, from, settings, ROUGH_GAIN).into_iter()",
     "lib", "optim::bfgs::tests::every_search_of_a_block_finds_its_own_minimum"),
    ("singles for columns of any size", "src/model/regression/objective.rs",
     "sizes.all(|size| size == 0.0 ||", "sizes.all(|size| size >= 0.0 ||",
     "lib", "model::regression::objective::tests::singles_are_for_columns_that_fit"),
    ("a parabola judged by its ends", KEPT,
     "first.max(last).max(peak).max(zero)", "first.max(last).max(zero)",
     "lib", f"{KEPT_TESTS}::no_value_of_a_column_changes_more_than_the_bound"),
    ("columns lag behind downwards without end", KEPT,
     "lag_up.max(lag_down).not_below(limit)", "lag_up.not_below(limit)",
     "lib", f"{KEPT_TESTS}::what_is_kept_is_as_near_to_the_sums_as_it_says"),
    ("what lags behind is forgotten", KEPT,
     "up: rounding.add(V::load(&changes.up)).lanes()", "up: rounding.lanes()",
     "lib", f"{KEPT_TESTS}::what_is_kept_is_as_near_to_the_sums_as_it_says"),
    ("only the first eight components are looked at", KEPT,
     "in bounds.high.iter().enumerate() {", "in bounds.high.iter().enumerate().take(1) {",
     "lib", f"{KEPT_TESTS}::settled_means_settled"),
    ("draws that share a first pass share their weights", "src/kernel/sparse/ledger.rs",
     "|(lane, w)| *lane = w[i]", "|(lane, _)| *lane = w[0][i]",
     "lib", "kernel::sparse::tests::searches_that_share_their_first_pass_know_what_they_would_find_out_alone"),
]


def program_of(module):
    """The test program that a file of tests belongs to."""
    return next(folder for folder in ("laws", "program") if (ROOT / "tests" / folder / f"{module}.rs").exists())


def cargo_test(folder, target, name, env):
    which, name = (["--lib"], name) if target == "lib" else (["--test", program_of(target)], f"{target}::{name}")
    # The profile of edit and test: dependencies are there already, and the package is compiled step by step.
    base = ["cargo", "test", "--quiet", *which]
    built = subprocess.run([*base, "--no-run"], cwd=folder, env=env, capture_output=True, text=True)
    if built.returncode != 0:
        return "does not compile", built.stderr
    run = subprocess.run([*base, name, "--", "--exact"], cwd=folder, env=env, capture_output=True, text=True)
    if "1 passed" in run.stdout:
        return "passed", run.stdout
    if "1 failed" in run.stdout:
        return "failed", run.stdout
    return "test not found", run.stdout + run.stderr


def main():
    words = sys.argv[1:]
    mutants = [m for m in MUTANTS if not words or any(w.lower() in m[0].lower() for w in words)]
    bad = 0
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "npl"
        # Copies are younger than what cargo has left of the last mutant of an earlier run.
        ignored = shutil.ignore_patterns("target", "runs", ".git")
        shutil.copytree(ROOT, folder, ignore=ignored, copy_function=shutil.copyfile)
        env = dict(os.environ, CARGO_INCREMENTAL="1", RUST_BACKTRACE="0")
        env.setdefault("CARGO_TARGET_DIR", str(ROOT / "target"))
        for target, test in sorted({(m[4], m[5]) for m in mutants}):
            outcome, log = cargo_test(folder, target, test, env)
            if outcome != "passed":
                print(log[-2000:], file=sys.stderr)
                sys.exit(f"{target}::{test} {outcome} before anything was broken")
        print("| Mutant | File | Killed by | Result |\n|---|---|---|---|", flush=True)
        for name, file, old, new, target, test in mutants:
            path = folder / file
            text = path.read_text()
            if text.count(old) != 1:
                outcome, log = f"text found {text.count(old)} times", ""
            else:
                path.write_text(text.replace(old, new))
                outcome, log = cargo_test(folder, target, test, env)
                path.write_text(text)
            result = {"failed": "killed", "passed": "SURVIVED"}.get(outcome, outcome.upper())
            bad += result != "killed"
            print(f"| {name} | `{file}` | `{target}::{test}` | {result} |", flush=True)
            if result not in ("killed", "SURVIVED"):
                print(log[-2000:], file=sys.stderr)
    print(f"\n{len(mutants)} mutants, {len(mutants) - bad} killed.")
    return 1 if bad else 0


if __name__ == "__main__":
    started = time.time()
    code = main()
    print(f"{time.time() - started:.0f} s", file=sys.stderr)
    sys.exit(code)
