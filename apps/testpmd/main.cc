// rio-testpmd: sends messages between RapidIO cards and measures them.
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_rawdev.h>

#include <algorithm>
#include <cstdio>
#include <span>
#include <string_view>
#include <vector>

#include "apps/common/std_streams.hpp"
#include "apps/testpmd/console.hpp"
#include "apps/testpmd/report.hpp"
#include "apps/testpmd/test_run.hpp"
#include "apps/testpmd/text.hpp"
#include "apps/testpmd/watch.hpp"

namespace rio::testpmd {
namespace {

int complain(const std::string& error) {
  std::fflush(stdout);
  std::fprintf(stderr, "rio-testpmd: error: %s\n", error.c_str());
  return kExitUsage;
}

/// All sizes, one after the other.
int run_all(TestRun& session) {
  const Options& options = session.options;
  for (const uint32_t size : options.sizes) {
    std::string error;
    if (session.start(size, &error) != 0) {
      return complain(error);
    }
    watch(session);
    std::fputs(totals_text(session.finish()).c_str(), stdout);
    std::fflush(stdout);
    if (interrupted() || apps::output_is_lost() || session.exit_code() == kExitCard) {
      break;
    }
  }
  if (options.sizes.size() > 1) {
    std::printf("\n%s", sweep_text(session.results()).c_str());
  }
  return session.exit_code();
}

int with_session(const Options& options, std::unique_ptr<pmd::cores::Placement> placement) {
  TestRun session(options, std::move(placement));
  std::string error;
  if (session.open(&error) != 0) {
    return complain(error);
  }
  int code = 0;
  if (options.interactive || !options.cmdline_file.empty()) {
    code = run_console(session, &error);
    if (!error.empty()) {
      return complain(error);
    }
  } else {
    code = run_all(session);
  }
  if (!options.json_file.empty() && !session.results().empty() &&
      write_json(options, session.results(), &error) != 0) {
    return complain(error);
  }
  return code;
}

/// Own options, before EAL takes its time: a mistake is told at once. @param eal EAL's options.
int parse(std::span<const std::string_view> eal, std::span<const std::string_view> own,
          Options* options) {
  for (const std::string_view arg : eal) {
    options->help = options->help || arg == "--help" || arg == "-h";
    options->version = options->version || arg == "--version";
  }
  std::string error;
  if (parse_options(own, options, &error) != 0 ||
      (!options->help && !options->version &&
       (check_options(*options, &error) != 0 || check_json(*options, &error) != 0)) ||
      find_mode(options->mode, &error) == nullptr) {
    return complain(error);
  }
  return 0;
}

/// EAL goes on without a card that it cannot start; its user would wonder.
uint32_t cards_asked_for(std::span<const std::string_view> eal) {
  uint32_t cards = 0;
  for (size_t i = 0; i < eal.size(); ++i) {
    const std::string_view value = eal[i] == "--vdev" && i + 1 < eal.size() ? eal[i + 1]
                                   : eal[i].starts_with("--vdev=")          ? eal[i].substr(7)
                                                                            : std::string_view();
    cards += value.starts_with("raw_rio") ? 1 : 0;
  }
  return cards;
}

int program(int argc, char** argv) {
  const std::vector<std::string_view> args(argv, argv + argc);
  const auto dashes = std::ranges::find(args, "--");
  const std::span<const std::string_view> eal(args.begin(), dashes);
  const std::span<const std::string_view> own(dashes == args.end() ? dashes : dashes + 1,
                                              args.end());
  Options options;
  if (parse(eal, own, &options) != 0) {
    return kExitUsage;
  }
  if (options.help) {
    std::fputs(help_text().c_str(), stdout);
    return kExitOk;
  }
  if (options.version) {
    std::puts("rio-testpmd " RIO_VERSION);
    return kExitOk;
  }
  const uint32_t cards = cards_asked_for(eal);
  std::unique_ptr<pmd::cores::Placement> placement;  // before EAL pins this thread
  if (pmd::cores::Placement::create(&placement) != 0) {
    std::fprintf(stderr,
                 "rio-testpmd: warning: hwloc cannot tell which cores are near the cards; "
                 "lcores are taken in EAL's order\n");
  }
  if (rte_eal_init(static_cast<int>(eal.size()), argv) < 0) {
    return complain(std::string("EAL could not start (") + rte_strerror(rte_errno) +
                    "); see its messages above. Without hugepages give --no-huge -m 512; "
                    "the options of this program stand behind --");
  }
  if (rte_rawdev_count() < cards) {
    const int code = complain(formatted(
        "EAL started %u of the %u cards that --vdev names; its messages above say why (each "
        "needs a name of its own: raw_rio0, raw_rio1)",
        rte_rawdev_count(), cards));
    rte_eal_cleanup();
    return code;
  }
  catch_interrupts();
  const int code = with_session(options, std::move(placement));
  rte_eal_cleanup();
  return code;
}

}  // namespace
}  // namespace rio::testpmd

int main(int argc, char** argv) {
  return rio::apps::run_program("rio-testpmd", rio::testpmd::program, argc, argv);
}
