// rio-testpmd: sends messages between RapidIO cards and measures them.
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_rawdev.h>

#include <cstdio>
#include <cstring>
#include <string_view>
#include <vector>

#include "apps/common/std_streams.hpp"
#include "apps/testpmd/console.hpp"
#include "apps/testpmd/report.hpp"
#include "apps/testpmd/test_run.hpp"
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
  std::unique_ptr<TestRun> session;
  std::string error;
  if (TestRun::create(options, std::move(placement), &session, &error) != 0) {
    return complain(error);
  }
  int code = 0;
  if (options.interactive || !options.cmdline_file.empty()) {
    code = run_console(*session, &error);
    if (!error.empty()) {
      return complain(error);
    }
  } else {
    code = run_all(*session);
  }
  if (!options.json_file.empty() && !session->results().empty() &&
      write_json(options, session->results(), &error) != 0) {
    return complain(error);
  }
  return code;
}

/// Own options, before EAL takes its time: a mistake is told at once.
int parse(int argc, char** argv, Options* options, int* eal_argc) {
  int at = 1;
  while (at < argc && std::strcmp(argv[at], "--") != 0) {
    ++at;
  }
  *eal_argc = at;
  std::vector<std::string_view> args;
  for (int i = at + 1; i < argc; ++i) {
    args.emplace_back(argv[i]);
  }
  for (int i = 1; i < at; ++i) {
    const std::string_view arg(argv[i]);
    options->help = options->help || arg == "--help" || arg == "-h";
    options->version = options->version || arg == "--version";
  }
  std::string error;
  if (parse_options(args, options, &error) != 0 ||
      (!options->help && !options->version &&
       (check_options(*options, &error) != 0 || check_json(*options, &error) != 0))) {
    return complain(error);
  }
  if (find_mode(options->mode, &error) == nullptr) {
    return complain("--mode: " + error);
  }
  return 0;
}

/// EAL goes on without a card that it cannot start; its user would wonder.
uint32_t cards_asked_for(int eal_argc, char** argv) {
  uint32_t cards = 0;
  for (int i = 1; i < eal_argc; ++i) {
    const std::string_view arg(argv[i]);
    const std::string_view value = arg == "--vdev" && i + 1 < eal_argc ? argv[i + 1]
                                   : arg.starts_with("--vdev=")        ? arg.substr(7)
                                                                       : std::string_view();
    cards += value.starts_with("raw_rio") ? 1 : 0;
  }
  return cards;
}

int program(int argc, char** argv) {
  Options options;
  int eal_argc = argc;
  if (parse(argc, argv, &options, &eal_argc) != 0) {
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
  const uint32_t cards = cards_asked_for(eal_argc, argv);  // EAL sorts argv anew
  std::unique_ptr<pmd::cores::Placement> placement;        // before EAL pins this thread
  if (pmd::cores::Placement::create(&placement) != 0) {
    std::fprintf(stderr,
                 "rio-testpmd: warning: hwloc cannot tell which cores are near the cards; "
                 "lcores are taken in EAL's order\n");
  }
  if (rte_eal_init(eal_argc, argv) < 0) {
    return complain(std::string("EAL could not start (") + rte_strerror(rte_errno) +
                    "); see its messages above. Without hugepages give --no-huge -m 512; "
                    "the options of this program stand behind --");
  }
  if (rte_rawdev_count() < cards) {
    const int code = complain(
        "EAL started " + std::to_string(rte_rawdev_count()) + " of the " + std::to_string(cards) +
        " cards that --vdev names; its messages above say why (each needs a name of its own: " +
        "raw_rio0, raw_rio1)");
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
