// rio-tool fabric: what is behind a card's link.
#include <cerrno>
#include <csignal>
#include <cstring>

#include "apps/tool/card_option.hpp"
#include "apps/tool/command.hpp"
#include "apps/tool/fabric_view.hpp"
#include "base/formatted.hpp"
#include "lib/enumerate/card_access.hpp"
#include "lib/enumerate/enumerator.hpp"
#include "lib/enumerate/looker.hpp"
#include "lib/enumerate/ping.hpp"
#include "lib/enumerate/route_trace.hpp"

namespace rio::tool {
namespace {

using enumerate::FabricMap;

constexpr uint32_t kLinkWaitMs = 2000;

volatile std::sig_atomic_t g_stop = 0;

/// Until it is destroyed Ctrl-C ends an enumeration in an orderly way, so that no device stays
/// locked; the second one ends the program.
class OrderlyEnd {
 public:
  OrderlyEnd() {
    struct sigaction action {};
    action.sa_handler = [](int) { g_stop = 1; };
    action.sa_flags = static_cast<int>(SA_RESETHAND);
    sigaction(SIGINT, &action, nullptr);
    sigaction(SIGTERM, &action, nullptr);
  }
  ~OrderlyEnd() {
    (void)std::signal(SIGINT, SIG_DFL);
    (void)std::signal(SIGTERM, SIG_DFL);
  }
  OrderlyEnd(const OrderlyEnd&) = delete;
  OrderlyEnd& operator=(const OrderlyEnd&) = delete;
};

/// Options of the command line.
struct FabricOptions {
  CardOption card;
  enumerate::EnumerateOptions run;  ///< its width of destIDs and its time are in the next two
  uint32_t id_bits = 8;
  uint32_t limit_s = 120;
  uint32_t timeout_ms = 50;
  bool look = false;
  std::string dot;
  uint32_t dest = 0;
  uint32_t source = 0;
  uint32_t count = 4;

  [[nodiscard]] bool large() const { return id_bits == 16; }
};

[[nodiscard]] int open(const GlobalOptions& context, const FabricOptions& options,
                       std::unique_ptr<enumerate::CardAccess>* out) {
  const uint32_t host_id = options.run.host_id;
  if (host_id == enumerate::kProbeId || (!options.large() && host_id > enumerate::kSmallIds)) {
    return complain("--host-id " + std::to_string(host_id) + " cannot be used",
                    "take 0 to 254, or with --id-bits 16 anything below 65535 but 255");
  }
  std::unique_ptr<Endpoint> endpoint;
  const EndpointConfig config =
      enumerate::CardAccess::config(host_id, options.large(), options.timeout_ms);
  if (open_endpoint(context, options.card, config, &endpoint) != 0) {
    return kExitFailed;
  }
  if (endpoint->wait_link(kLinkWaitMs) != 0) {
    return complain("the link of " + endpoint->name() + " is down",
                    "look at the cable and at rio-tool links");
  }
  *out = std::make_unique<enumerate::CardAccess>(std::move(endpoint), options.timeout_ms);
  return kExitOk;
}

int card_stopped(int rc) {
  return complain(std::string("the card stopped working: ") + std::strerror(-rc),
                  "look at its link, reset it, and try again");
}

/// Map the fabric. @param only_look change nothing, show what the routes lead to.
/// @return the exit code; kExitFailed: maybe without a map.
[[nodiscard]] int map_fabric(const GlobalOptions& context, const FabricOptions& options,
                             bool only_look, FabricMap* map) {
  std::unique_ptr<enumerate::CardAccess> access;
  if (const int code = open(context, options, &access); code != kExitOk) {
    return code;
  }
  enumerate::EnumerateOptions run = options.run;
  run.large = options.large();
  run.limits.time = std::chrono::seconds(options.limit_s);
  int rc = 0;
  if (only_look) {
    rc = enumerate::Looker(*access, run).run(map);
  } else {
    run.limits.stop = &g_stop;
    const OrderlyEnd orderly;
    rc = enumerate::Enumerator(*access, run).run(map);
  }
  if (rc != 0 && rc != -ETIME && rc != -EBUSY) {
    return card_stopped(rc);
  }
  return map->problems.empty() ? kExitOk : kExitFound;
}

int run_fabric(const GlobalOptions& context, const FabricOptions& options) {
  FabricMap map;
  const int code = map_fabric(context, options, options.look || context.dry_run, &map);
  if (map.nodes.empty()) {
    return code;
  }
  print_result(context, to_json(map), tree_text(map));
  if (!options.dot.empty() && write_file(options.dot, to_dot(map)) != 0) {
    return kExitFailed;
  }
  return code;
}

int run_route(const GlobalOptions& context, const FabricOptions& options) {
  FabricMap map;
  if (const int code = map_fabric(context, options, true, &map); code == kExitFailed) {
    return code;
  }
  enumerate::RouteTrace trace;
  if (enumerate::trace_route(map, options.source, options.dest, &trace) != 0) {
    return complain("no endpoint with destID " + std::to_string(options.source) + " was seen",
                    "enumerate first: rio-tool fabric; then see rio-tool fabric --look");
  }
  Json data = {{"source", options.source},
               {"dest", options.dest},
               {"arrives", trace.why.empty()},
               {"why", trace.why},
               {"switches", Json::array()}};
  std::string text = "destID " + std::to_string(options.source) + '\n';
  for (const enumerate::RouteStep& step : trace.steps) {
    const bool out = step.out_port < map.nodes[step.node].ports.size();
    data["switches"].push_back({{"name", map.name(step.node)},
                                {"in_port", step.in_port},
                                {"out_port", out ? Json(step.out_port) : Json()}});
    text += "  " + map.name(step.node) + "  in by port " + std::to_string(step.in_port) +
            (out ? ", out by port " + std::to_string(step.out_port) : "") + '\n';
  }
  text += trace.why.empty() ? "destID " + std::to_string(options.dest) + '\n'
                            : "does not arrive: " + trace.why + '\n';
  print_result(context, data, text);
  return trace.why.empty() ? kExitOk : kExitFound;
}

int run_ping(const GlobalOptions& context, const FabricOptions& options) {
  std::unique_ptr<enumerate::CardAccess> access;
  if (const int code = open(context, options, &access); code != kExitOk) {
    return code;
  }
  enumerate::PingResult result;
  if (const int rc = enumerate::ping(*access, options.dest, options.count, &result); rc != 0) {
    return card_stopped(rc);
  }
  const bool is_model = access->endpoint().caps().is_model;
  const std::string identity = identity_text(result.identity);
  const std::string rest =
      result.answered == 0
          ? "; see whether it was enumerated: rio-tool fabric"
          : base::formatted(" as %s; round trip min %.1f, mean %.1f, max %.1f us%s",
                            identity.c_str(), result.min_us, result.mean_us, result.max_us,
                            is_model ? " (emulated card)" : "");
  print_result(context,
               {{"dest_id", options.dest},
                {"sent", options.count},
                {"answered", result.answered},
                {"identity", result.answered > 0 ? Json(identity) : Json()},
                {"min_us", result.min_us},
                {"mean_us", result.mean_us},
                {"max_us", result.max_us},
                {"emulated", is_model}},
               base::formatted("destID %u: %u of %u answered%s\n", options.dest, result.answered,
                               options.count, rest.c_str()));
  return result.answered == options.count ? kExitOk
         : result.answered > 0            ? kExitFound
                                          : kExitFailed;
}

/// A number with its default in the help.
void add_number(CLI::App& command, const char* name, uint32_t& value, const char* help,
                const CLI::Validator& check) {
  command.add_option(name, value, help)->check(check)->capture_default_str();
}

void add_common(CLI::App& command, FabricOptions& options) {
  using CLI::Range;
  options.card.add_to(command);
  add_number(command, "--host-id", options.run.host_id,
             "destID of this card, and the host that its locks name", Range(0u, 0xFFFEu));
  add_number(command, "--id-bits", options.id_bits, "Width of destIDs: 8 or 16",
             CLI::IsMember({8u, 16u}));
  add_number(command, "--timeout-ms", options.timeout_ms, "Milliseconds to wait for an answer",
             Range(1u, 10000u));
  add_number(command, "--tries", options.run.limits.tries,
             "Tries of an access that is not answered", Range(1u, 100u));
  add_number(command, "--limit", options.limit_s, "Seconds for the whole enumeration",
             Range(1u, 86400u));
}

void add_ping(CLI::App& command, GlobalOptions& context,
              const std::shared_ptr<FabricOptions>& options) {
  CLI::App* ping = command.add_subcommand("ping", "Read the identity of an endpoint, and time it");
  ping->add_option("DESTID", options->dest)->required()->check(CLI::Range(0u, 0xFFFFu));
  add_number(*ping, "--count", options->count, "How often", CLI::Range(1u, 1000000u));
  ping->footer("Examples\n  rio-tool fabric ping 5\n  rio-tool fabric ping 5 --count 1000 --json");
  ping->callback([&context, options] { context.exit_code = run_ping(context, *options); });
}

void add_route(CLI::App& command, GlobalOptions& context,
               const std::shared_ptr<FabricOptions>& options) {
  CLI::App* route = command.add_subcommand("route", "Show the way between two endpoints");
  route->add_option("SOURCE", options->source, "destID")
      ->required()
      ->check(CLI::Range(0u, 0xFFFFu));
  route->add_option("DEST", options->dest, "destID")->required()->check(CLI::Range(0u, 0xFFFFu));
  route->footer("Examples\n  rio-tool fabric route 0 5");
  route->callback([&context, options] { context.exit_code = run_route(context, *options); });
}

}  // namespace

void add_fabric(CLI::App& app, GlobalOptions& context) {
  auto options = std::make_shared<FabricOptions>();
  CLI::App* command = app.add_subcommand(
      "fabric", "Find all devices behind a card, set all routes; the card is reset");
  add_common(*command, *options);
  command->add_flag("--steal", options->run.steal, "Break locks of other hosts");
  command->add_flag("--look", options->look,
                    "Only show what the routes lead to, change nothing (as with -n)");
  command->add_option("--dot", options->dot, "Write a drawing for Graphviz there");
  command->require_subcommand(0, 1);
  add_ping(*command, context, options);
  add_route(*command, context, options);
  command->footer(
      "Examples\n"
      "  rio-tool fabric --dot fabric.dot && dot -Tsvg fabric.dot > fabric.svg\n"
      "  rio-tool fabric --look --json\n"
      "  rio-tool fabric --card emu:fabric,topology=fabric.json,at=host");
  command->callback([&context, options, command] {
    if (command->get_subcommands().empty()) {
      context.exit_code = run_fabric(context, *options);
    }
  });
}

}  // namespace rio::tool
