// rio-sim: barriers on networks in virtual time.
#include <cstdio>
#include <new>
#include <string>

#include <CLI/CLI.hpp>

#include "apps/common/std_streams.hpp"
#include "apps/sim/barrier_options.hpp"
#include "apps/sim/barrier_report.hpp"
#include "apps/sim/barrier_run.hpp"
#include "apps/sim/figures.hpp"
#include "apps/sim/progress.hpp"

namespace rio::simapp {
namespace {

constexpr const char* kFooter = R"(Examples
  rio-sim barrier                       a barrier of 128 nodes on a torus, run by the card
  rio-sim barrier --help                all options, with examples
  rio-sim figure nodes                  latency by nodes, in software and on the card

Exit code
  0  done
  1  it could not be done, or a barrier was wrong; the reason is on stderr
  2  wrong command line)";

constexpr const char* kFigureFooter = R"(Examples
  rio-sim figure nodes                          print a table
  rio-sim figure nodes --nodes 128              only as far as [S1] goes
  rio-sim figure overhead --json overhead.json && scripts/plot overhead.json -o overhead.svg

Exit code
  0  done
  1  it could not be done; the reason is on stderr
  2  wrong command line)";

constexpr uint32_t kFigureNodes = 4096;
constexpr uint32_t kFigureNodesMax = 1u << 20;

int run_barrier(const BarrierWords& words, const OutputOptions& output, BarrierPlan& plan) {
  std::string error;
  if (take_words(words, &plan, &error) != 0) {
    return complain(error, kExitUsage);
  }
  BarrierResult result;
  int rc = 0;
  {
    ProgressLine line;
    const auto watch = [&](const BarrierProgress& at) {
      if (line.is_due()) {
        line.show("barrier " + with_commas(at.barrier + 1) + " of " + with_commas(plan.barriers) +
                  ", " + with_commas(at.left) + " of " + with_commas(at.ranks) +
                  " ranks have left");
      }
    };
    rc = run_barriers(plan, watch, &result, &error);
  }
  if (rc != 0) {
    return complain(error, kExitUsage);
  }
  if (output.json != "-") {
    std::fputs(to_text(plan, result).c_str(), stdout);
  }
  if (!output.json.empty() &&
      write_json(to_json(plan, result, output.exits), output.json, &error) != 0) {
    return complain(error, kExitWrong);
  }
  if (result.violations != 0) {
    return complain(with_commas(result.violations) + " ranks left before the last one had arrived",
                    kExitWrong);
  }
  if (result.is_bad(plan)) {
    return complain("barrier " + with_commas(result.barriers) + ": " + with_commas(result.failed) +
                        " ranks failed and " + with_commas(result.waiting) +
                        " wait, and no fault explains it; give it more time with --within or "
                        "--timeout",
                    kExitWrong);
  }
  return kExitOk;
}

int run_figure(const std::string& name, const OutputOptions& output, const BarrierPlan& plan,
               uint32_t nodes_max) {
  std::string error;
  FigureData figure;
  int rc = 0;
  {
    ProgressLine line;
    const auto watch = [&](size_t runs) {
      if (line.is_due()) {
        line.show("figure " + name + ": " + std::to_string(runs) + " runs done");
      }
    };
    rc = make_figure(name, plan, nodes_max, watch, &figure, &error);
  }
  if (rc != 0) {
    return complain(error, kExitWrong);
  }
  if (output.json != "-") {
    std::fputs(to_text(figure).c_str(), stdout);
  }
  if (!output.json.empty() && write_json(to_json(figure), output.json, &error) != 0) {
    return complain(error, kExitWrong);
  }
  return kExitOk;
}

/// All that the command line fills in.
struct Words {
  BarrierPlan plan;
  BarrierWords barrier;
  OutputOptions output;
  std::string figure;
  uint32_t nodes_max = kFigureNodes;
};

void add_figure(CLI::App& app, Words* words) {
  std::vector<std::string> names;
  std::string text = "Which figure:";
  for (const FigureName& figure : figure_names()) {
    names.emplace_back(figure.name);
    text += std::string("\n") + figure.name + ": " + figure.text;
  }
  app.add_option("NAME", words->figure, text)->required()->check(CLI::IsMember(names));
  app.add_option("--nodes", words->nodes_max, "Nodes, at most")
      ->check(CLI::Range(2u, kFigureNodesMax))
      ->capture_default_str();
  add_network_options(app, &words->plan);
  app.add_option("--json", words->output.json, "File to write the curves to; -: stdout");
  app.footer(kFigureFooter);
}

int program(int argc, char** argv) {
  CLI::App app("Simulates barriers on networks in virtual time. [S1]", "rio-sim");
  Words words;
  int code = kExitOk;
  CLI::App* const barrier = app.add_subcommand("barrier", "Run barriers of one configuration");
  add_barrier_options(*barrier, &words.plan, &words.barrier, &words.output);
  barrier->callback([&] { code = run_barrier(words.barrier, words.output, words.plan); });
  CLI::App* const figure = app.add_subcommand("figure", "Reproduce a figure of [S1]");
  add_figure(*figure, &words);
  figure->callback(
      [&] { code = run_figure(words.figure, words.output, words.plan, words.nodes_max); });
  app.set_version_flag("--version", "rio-sim " RIO_VERSION, "Print the version and exit");
  app.require_subcommand(1);
  app.footer(kFooter);
  try {
    app.parse(argc, argv);
  } catch (const std::bad_alloc&) {
    return complain("not enough memory for so many nodes; make the topology smaller", kExitWrong);
  } catch (const CLI::Success& help) {
    return app.exit(help);
  } catch (const CLI::ParseError& error) {
    const bool is_command = !app.get_subcommands().empty();
    const std::vector<std::string> rest = app.remaining();
    return complain(!is_command && !rest.empty()
                        ? "no command or option '" + rest.front() + "'; rio-sim --help lists them"
                        : std::string(error.what()) + "; rio-sim " +
                              (is_command ? app.get_subcommands().front()->get_name() + " " : "") +
                              "--help has examples",
                    kExitUsage);
  }
  return code;
}

}  // namespace
}  // namespace rio::simapp

int main(int argc, char** argv) {
  return rio::apps::run_program("rio-sim", rio::simapp::program, argc, argv);
}
