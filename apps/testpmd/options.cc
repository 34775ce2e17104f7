#include "apps/testpmd/options.hpp"

#include <cerrno>

#include <CLI/CLI.hpp>

namespace rio::testpmd {
namespace {

constexpr size_t kHelpColumn = 32;

constexpr const char* kFooter = R"(Modes
  io          what a port receives is forwarded, zero-copy
  txonly      every port sends, and drops what comes in
  rxonly      ports receive and drop; of two ports wired together the second sends
  flowgen     every port sends --flows flows over all mailboxes
  pingpong    one message to and fro between two ports: half a round trip
  dedicated   every port streams into all dedicated queues of its peer; --size up to 1 MiB
  doorbell    every port sends doorbells
  rdma        every port reads or writes its peer's memory; --op

Examples (two emulated cards, wired to each other)
  E="-l 0 --no-pci --iova-mode=va --in-memory --vdev raw_rio0,wire=pair0 --vdev raw_rio1,wire=pair0"
  rio-testpmd $E -- --mode io --size 64 --seconds 5 --verify
  rio-testpmd $E -- --mode txonly --size 8,4096,2,MUL --seconds 1 --json sweep.json
  rio-testpmd $E -- --mode pingpong --size 8 --seconds 2
  rio-testpmd $E -- --mode dedicated --size 4K --offset 24 --count 1000 --verify
  rio-testpmd $E -- --mode io --faults 7:0.01 --count 7000 --verify
  rio-testpmd $E -- -i

Exit code
  0  done (and, with --verify, every byte was right)
  1  wrong option, or the set-up failed
  2  --verify found something lost, duplicated or corrupted
  3  the card is gone, or nothing moves any more)";

int fail(std::string* error, std::string text) {
  *error = std::move(text);
  return -EINVAL;
}

void add_option(CLI::App& app, const OptionDef& option, Options* out) {
  const auto set = [&option, out](const std::string& value) {
    std::string why;
    if (option.set(*out, value, &why) != 0) {
      throw CLI::ValidationError("--" + std::string(option.name), why);
    }
  };
  const std::string name =
      (option.letter == nullptr ? "" : std::string(option.letter) + ",") + "--" + option.name;
  if (option.value == nullptr) {
    app.add_flag_callback(
        name, [set] { set(""); }, option.help);
  } else {
    app.add_option_function<std::string>(name, set, option.help)
        ->type_name(option.value)
        ->take_last();
  }
}

/// @param out where the callbacks of the options write; outlives the application.
void add_options(CLI::App& app, Options* out) {
  app.name("rio-testpmd EAL-OPTIONS --");
  app.set_help_flag("");  // a row of the table: EAL's side of the command line may ask for it too
  app.get_formatter()->column_width(kHelpColumn);
  for (const OptionDef& option : option_table()) {
    add_option(app, option, out);
  }
}

}  // namespace

const OptionDef* find_option(std::string_view name) {
  for (const OptionDef& option : option_table()) {
    if (name == option.name) {
      return &option;
    }
  }
  return nullptr;
}

int parse_options(std::span<const std::string_view> args, Options* out, std::string* error) {
  Options options = *out;
  CLI::App app;
  add_options(app, &options);
  try {
    app.parse(std::vector<std::string>(args.rbegin(), args.rend()));  // CLI11 takes the last first
  } catch (const CLI::ExtrasError& unknown) {
    return fail(error, std::string(unknown.what()) + "; --help lists the options");
  } catch (const CLI::ParseError& wrong) {
    return fail(error, wrong.what());
  }
  *out = std::move(options);
  return 0;
}

std::string help_text() {
  Options ignored;
  CLI::App app(
      "Sends messages between RapidIO cards (rawdevs of driver raw_rio) and measures them.");
  add_options(app, &ignored);
  app.footer(kFooter);
  return app.help();
}

int check_options(const Options& options, std::string* error) {
  if (options.seconds > 0 && options.count > 0) {
    return fail(error, "--seconds and --count exclude each other; give one of them");
  }
  if (options.sizes.size() > 1 && options.seconds <= 0 && options.count == 0) {
    return fail(error, "a sweep of " + std::to_string(options.sizes.size()) +
                           " sizes needs --seconds or --count for each size");
  }
  if (!options.forward_lcores.empty() && options.nb_cores != 0 &&
      options.forward_lcores.size() != options.nb_cores) {
    return fail(error, "--forward-lcores names " + std::to_string(options.forward_lcores.size()) +
                           " lcores, but --nb-cores is " + std::to_string(options.nb_cores) +
                           "; leave --nb-cores out");
  }
  if (!options.json_file.empty() && options.interactive) {
    return fail(error, "--json and -i exclude each other; leave out -i");
  }
  return 0;
}

}  // namespace rio::testpmd
