#include "apps/tune/options.hpp"

#include <cstdio>

#include <CLI/CLI.hpp>

namespace rio::tune {
namespace {

constexpr const char* kFooter = R"(Examples
  rio-tune                                      measure, and write the profile
  rio-tune --output - --quick                   only look
  rio-tune --card 0000:03:00.0 --other 0000:04:00.0
  RIO_PROFILE=none rio-msgrate --api tag        go without it

The profile is written to $RIO_PROFILE, else to riopmd/profile in $XDG_CONFIG_HOME or ~/.config,
where programs find it when they open a card. Measure on a quiet machine: where the rounds do
not agree, nothing is written.

Exit code
  0  done
  1  it could not be done; the reason is on stderr
  2  wrong command line
  3  measured, but the rounds do not agree: nothing was written)";

constexpr uint32_t kQuickBytes = 1u << 20;
constexpr uint32_t kQuickRounds = 3;

}  // namespace

bool parse_options(int argc, char** argv, Options* out, int* code) {
  CLI::App app(
      "Measures from which size on it pays to move tagged messages by dedicated queues, where "
      "they\n"
      "are, instead of copying them, and keeps it for programs of this machine.");
  std::string json;
  bool quick = false;
  auto* const card = app.add_option(
      "--card", out->card, "Card that sends, as docs/embedding.md names them; default: emulated");
  app.add_option("--other", out->other, "Card that receives, of this machine, too")->needs(card);
  app.add_option("--output", out->output, "File to write; -: only print what it would have");
  app.add_flag("--quick", quick,
               "Fewer messages: seconds, and a rough answer, which is written too");
  app.add_flag("--force", out->force, "Write it although the rounds do not agree");
  app.add_option("--json", json, "-: print a JSON object")->check(CLI::IsMember({"-"}));
  app.set_version_flag("--version", "rio-tune " RIO_VERSION, "Print the version and exit");
  app.footer(kFooter);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    *code = app.exit(error) == 0 ? 0 : 2;
    return false;
  }
  if (out->card.empty() != out->other.empty()) {
    std::fprintf(stderr, "rio-tune: --card needs --other: one card sends, the other receives\n");
    *code = 2;
    return false;
  }
  out->json = !json.empty();
  if (out->json && out->output == "-") {
    std::fprintf(stderr, "rio-tune: --json - and --output - both want stdout; leave one out\n");
    *code = 2;
    return false;
  }
  if (quick) {
    out->round_bytes = kQuickBytes;
    out->rounds = kQuickRounds;
  }
  return true;
}

}  // namespace rio::tune
