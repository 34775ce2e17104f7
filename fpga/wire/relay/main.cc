// rio-relay: the host that forwards between boards which only reach the host [S2].
#include <sys/resource.h>
#include <sys/signalfd.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>

#include "base/number.hpp"
#include "fpga/wire/relay/host.hpp"

namespace rio::wire::relay {
namespace {

constexpr int kWrongCommandLine = 2;
constexpr const char* kExamples = R"(
Examples
  rio-relay lab --boards 2 &
  messages serve relay:lab,board=0,id=1 & messages ask relay:lab,board=1
  scripts/mpirun-rio --relay 4 -np 8 --oversubscribe ./trapezoid
  kill -USR1 $(pidof rio-relay)      prints its status

A board's processes open the card relay:NAME[,board=B][,id=N]; see docs/relay.md.
Exit code: 0 ended by SIGINT or SIGTERM, 1 it could not run, 2 wrong command line.)";

bool verbose = false;

void tell(bool trouble, const std::string& what) {
  if (trouble || verbose) {
    std::fprintf(stderr, "rio-relay: %s\n", what.c_str());
  }
}

/// Raises the limit of open files: a process costs the host four descriptors.
void raise_limit_of_files() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
  }
}

/// A descriptor that receives signals.
[[nodiscard]] base::Fd signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR1}) {
    sigaddset(&set, signal);
  }
  sigprocmask(SIG_BLOCK, &set, nullptr);
  return base::Fd(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
}

[[nodiscard]] int serve(const HostConfig& config, bool json) {
  const base::Fd until = signals();
  raise_limit_of_files();
  std::unique_ptr<Host> host;
  std::string error;
  if (!until.valid() || Host::create(config, tell, &host, &error) != 0) {
    std::fprintf(stderr, "rio-relay: %s\n", error.empty() ? "no descriptors" : error.c_str());
    return 1;
  }
  std::printf("relay %s: %u boards of %u processes\n", config.name.c_str(), config.boards,
              config.processes);
  std::fflush(stdout);
  for (bool ends = false; !ends;) {
    host->run(until);
    signalfd_siginfo info{};
    while (read(until.get(), &info, sizeof info) == sizeof info) {
      ends = ends || info.ssi_signo != SIGUSR1;
    }
    if (!ends || json) {
      std::printf("%s\n", host->status().c_str());
      std::fflush(stdout);
    }
  }
  return 0;
}

[[nodiscard]] int run(int argc, char** argv) {
  CLI::App app{"Forwards between emulated boards which reach only this host: the relay of [S2]."};
  HostConfig config;
  bool json = false;
  app.footer(kExamples);
  app.add_option("name", config.name, "1 to 63 letters, digits, '_', '.' or '-', no '.' first");
  app.add_option("--boards", config.boards, "boards behind this host, 1 to 64")
      ->check(CLI::Range(1u, kBoardsMax))
      ->capture_default_str();
  app.add_option("--processes", config.processes, "processes that a board takes, 1 to 1024")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  app.add_flag("--json", json,
               "print the status at the end, one line, as SIGUSR1 does at any time");
  app.add_flag("-v,--verbose", verbose, "report on stderr which processes come and go");
  app.set_version_flag("--version", "rio-relay " RIO_VERSION, "Print the version and exit");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kWrongCommandLine;
  }
  if (!base::is_name(config.name, 63, "_.-") || config.name.front() == '.') {
    std::fprintf(
        stderr,
        "rio-relay: \"%s\" is not a valid name: give 1 to 63 letters, digits, '_', '.' or '-', no "
        "'.' first\n",
        config.name.c_str());
    return kWrongCommandLine;
  }
  return serve(config, json);
}

}  // namespace
}  // namespace rio::wire::relay

int main(int argc, char** argv) {
  try {
    return rio::wire::relay::run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "rio-relay: %s\n", error.what());
    return 1;
  }
}
