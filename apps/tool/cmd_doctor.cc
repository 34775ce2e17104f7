// rio-tool doctor: what is wrong with this machine, and what mends it.
#include <array>
#include <memory>

#include "apps/common/columns.hpp"
#include "apps/tool/command.hpp"
#include "apps/tool/doctor/machine.hpp"

namespace rio::tool {
namespace {

constexpr std::array<Check, 9> kChecks = {
    check_bars,      check_link,     check_binding, check_iommu, check_rights,
    check_hugepages, check_programs, check_dpdk,    check_cpus,
};

struct Options {
  std::string explain;
  std::string user;
  bool list = false;
};

const char* name_of(Severity severity) {
  return severity == Severity::kError ? "error" : "warning";
}

}  // namespace

/// The JSON library finds it, and makes an array of findings by it.
static void to_json(Json& json, const Finding& one) {
  json = {{"id", one.kind->id},  {"severity", name_of(one.kind->severity)},
          {"card", one.card},    {"what", one.kind->line},
          {"seen", one.seen},    {"remedy", one.remedy},
          {"advice", one.advice}};
}

namespace {

/// In lines that a terminal shows whole.
std::string wrapped(std::string_view text) {
  constexpr size_t kColumns = 100;
  std::string lines;
  while (text.size() > kColumns) {
    const size_t blank = text.rfind(' ', kColumns);
    if (blank == std::string_view::npos) {
      break;  // one word
    }
    lines.append(text.substr(0, blank)).append("\n");
    text.remove_prefix(blank + 1);
  }
  return lines.append(text);
}

std::string text_of_findings(const Findings& findings) {
  std::string text;
  for (const Finding& one : findings.all) {
    text.append(name_of(one.kind->severity)).append("  ").append(one.kind->id);
    text.append(one.card.empty() ? "" : "  " + one.card).append(": ").append(one.kind->line);
    text.append("\n  seen    ").append(one.seen).append("\n");
    text.append(one.remedy.empty() ? "" : "  remedy  " + one.remedy + "\n");
    text.append(one.advice.empty() ? "" : "  advice  " + one.advice + "\n");
  }
  for (const std::string& what : findings.unseen) {
    text.append("not looked at: ").append(what).append("\n");
  }
  const size_t errors = findings.count(Severity::kError);
  const size_t warnings = findings.count(Severity::kWarning);
  text.append(errors + warnings == 0 ? "nothing found\n"
                                     : apps::counted(errors, "error", "errors") + ", " +
                                           apps::counted(warnings, "warning", "warnings") + "\n");
  return text;
}

int list_kinds(const GlobalOptions& context) {
  Json data = Json::array();
  TextTable table({"id", "severity", "what"});
  for (const Kind& kind : all_kinds()) {
    data.push_back({{"id", kind.id}, {"severity", name_of(kind.severity)}, {"what", kind.line}});
    table.add({kind.id, name_of(kind.severity), kind.line});
  }
  return print_result(context, data, table.text());
}

int explain(const GlobalOptions& context, const std::string& id) {
  const Kind* kind = find_kind(id);
  if (kind == nullptr) {
    return complain("no finding has the id \"" + id + "\"", "rio-tool doctor --list shows them all",
                    kExitUsage);
  }
  return print_result(context,
                      {{"id", kind->id},
                       {"severity", name_of(kind->severity)},
                       {"what", kind->line},
                       {"why", kind->why}},
                      std::string(kind->id) + " (" + name_of(kind->severity) + "): " + kind->line +
                          "\n\n" + wrapped(kind->why) + "\n");
}

int doctor(const GlobalOptions& context, Options& options) {
  if (options.list) {
    return list_kinds(context);
  }
  if (!options.explain.empty()) {
    return explain(context, options.explain);
  }
  std::unique_ptr<Machine> machine;
  if (Machine::read(context, options.user, &machine) != 0) {
    return kExitFailed;
  }
  Findings findings;
  for (const Check check : kChecks) {
    check(*machine, findings);
  }
  print_result(context,
               {{"findings", findings.all},
                {"errors", findings.count(Severity::kError)},
                {"warnings", findings.count(Severity::kWarning)},
                {"not_seen", findings.unseen}},
               text_of_findings(findings));
  return findings.count(Severity::kError) != 0 ? kExitFound : kExitOk;
}

}  // namespace

void add_doctor(CLI::App& app, GlobalOptions& context) {
  const auto [command, options] =
      add_command(app, context, "doctor", "Find what is wrong with this machine, and what mends it",
                  "Changes nothing. Run it as root, or it cannot look at all.\n"
                  "Exit code: 0 healthy or warnings only, 3 errors found, 1 it could not look.\n"
                  "Examples\n"
                  "  sudo rio-tool doctor\n"
                  "  sudo rio-tool doctor --user $USER     may I use the card?\n"
                  "  rio-tool doctor --explain iommu.blocks-uio",
                  doctor);
  CLI::Option* list =
      command.add_flag("--list", options.list, "Show the ids of all findings that there can be");
  command.add_option("--explain", options.explain, "Say what a finding means")
      ->type_name("ID")
      ->excludes(list);
  command
      .add_option("--user", options.user,
                  "Check the rights of this user (default: the user that runs rio-tool)")
      ->type_name("NAME");
}

}  // namespace rio::tool
