// rio-tool errors: what went wrong, decoded, and what the card has to tell.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include "apps/common/columns.hpp"
#include "apps/tool/card_option.hpp"
#include "apps/tool/command.hpp"
#include "apps/tool/pace.hpp"
#include "apps/tool/port_errors.hpp"
#include "pmd/api/card_name.hpp"
#include "pmd/dev/queue_pair.hpp"

namespace rio::tool {
namespace {

struct Options {
  CardOption card;
  bool watch = false;
  Pace pace;
};

/// The card, as far as it can be had: with its maintenance queue, or only to be looked at.
struct Source {
  LookedAtCard looked;
  std::unique_ptr<pmd::QueuePair> pair;  ///< null: `missing` says why. After the card.
  std::string missing;
  bool failed = false;  ///< it is missing although nothing stands against it

  [[nodiscard]] int exit_code(bool found) const {
    return found ? kExitFound : failed ? kExitFailed : kExitOk;
  }
};

/// The card with all that it can do. On PCI it was opened to be looked at only, and if that woke it
/// up it has one user, who is us; other cards can do all from the beginning.
int open_whole(const GlobalOptions& context, const std::string& name, LookedAtCard* looked) {
  name::CardName parsed;
  if (parse_card_name(name, &parsed) != 0) {
    return -EINVAL;
  }
  auto* const on_pci = std::get_if<name::Pci>(&parsed.kind);
  if (on_pci == nullptr) {
    return 0;
  }
  on_pci->reset = false;  // whatever the name says: what the card has noted down stays
  looked->card.reset();   // before its bus
  looked->bus.reset();
  const int rc = open_bus(parsed, context.paths, &looked->bus);
  const int again =
      rc == 0 ? pmd::Card::look(*looked->bus, &looked->card) : open_to_look(context, name, looked);
  return rc != 0 ? rc : again;
}

/// Rings for maintenance and events, without a reset if the card is set up: what it has noted
/// down stays.
int open_queues(const GlobalOptions& context, const std::string& name, Source* source) {
  if (const int rc = open_whole(context, name, &source->looked); rc != 0) {
    return rc;
  }
  pmd::Bus& bus = *source->looked.bus;
  pmd::Mmio bar = bus.bar();
  const uint32_t generation = bar.read32(regs::id::gen_ack());
  const bool set_up = generation != 0 && generation == bar.read32(regs::id::gen_req());
  std::unique_ptr<pmd::Card> card;
  int rc = set_up ? pmd::Card::attach(bus, &card)
                  : pmd::Card::open(bus, {.dest_ids = {}, .rx_map = {}, .vfs = {}}, &card);
  if (rc != 0) {
    return rc;
  }
  pmd::QueuePairConfig queues;
  queues.rings = pmd::ring_bit(regs::Ring::kMaint) | pmd::ring_bit(regs::Ring::kEvent);
  if (rc = card->open_queue_pair(0, queues, &source->pair); rc == 0) {
    source->looked.card = std::move(card);
  }
  return rc;
}

int open_source(const GlobalOptions& context, const std::string& name, Source* source) {
  std::string user;
  if (const int rc = open_to_look(context, name, &source->looked); rc != 0) {
    return rc;
  }
  if (const int rc = find_user(*source->looked.card, &user); rc != 0) {
    return rc;
  }
  if (!user.empty()) {
    source->missing = "a program uses the card (" + user +
                      " runs) and gets its events; end it, and ask again without a reset between";
  } else if (context.dry_run) {
    source->missing = "dry run: no ring of the card is started";
  } else if (!source->looked.card->caps().maint) {
    source->missing = "the card has no maintenance queue";
  } else if (const int rc = open_queues(context, name, source); rc != 0) {
    if (source->looked.card == nullptr) {
      return rc;  // not even to be looked at any more, which was said
    }
    source->failed = rc != -EBUSY;
    source->missing = std::string("its maintenance queue cannot be had: ") + std::strerror(-rc) +
                      (rc == -EBUSY ? "; end the program that has the card open" : "");
  }
  return 0;
}

/// Add all findings now. @return 0 or -errno, said on stderr.
int look(Source& source, std::vector<CardError>* out) {
  source.looked.let_work();
  const int rc = read_card_errors(*source.looked.card, out);
  return rc != 0 || source.pair == nullptr
             ? rc
             : read_error_registers(csr_reader(source.pair->maint()), out);
}

std::vector<pmd::CardEvent> take_events(Source& source) {
  constexpr uint16_t kMost = 64;
  pmd::CardEvent events[kMost];
  const uint16_t n = source.pair != nullptr ? source.pair->events().burst(events, kMost) : 0;
  return {events, events + n};
}

int once(const GlobalOptions& context, Source& source) {
  std::vector<CardError> found;
  if (look(source, &found) != 0) {
    return kExitFailed;
  }
  Json events = Json::array();
  TextTable table({"where", "what", "register"});
  for (const CardError& finding : found) {
    table.add({finding.where, finding.what, finding.code});
  }
  std::string text = table.empty() ? "no errors\n" : table.text();
  for (const pmd::CardEvent& event : take_events(source)) {
    events.push_back(event_json(event));
    text += "event: " + event_text(event) + '\n';
  }
  text += source.missing.empty() ? "" : "without the error registers: " + source.missing + '\n';
  print_result(context,
               {{"card", source.looked.bus->name()},
                {"errors", found},
                {"events", events},
                {"registers_missing", source.missing}},
               text);
  return source.exit_code(!found.empty());
}

void print_line(const GlobalOptions& context, const char* kind, const Json& data,
                const std::string& text) {
  Json line = {{"time", utc_text()}, {"kind", kind}};
  line.update(data);
  print_result(context, line, time_of_day() + "  " + apps::padded(kind, 6) + " " + text + "\n", -1);
}

int watch(const GlobalOptions& context, Source& source, Pace& pace) {
  if (!source.missing.empty()) {
    print_line(context, "note", {{"registers_missing", source.missing}},
               "without the error registers: " + source.missing);
  }
  std::vector<CardError> before;
  bool any = false;
  do {
    std::vector<CardError> now;
    if (look(source, &now) != 0) {
      return kExitFailed;
    }
    for (const CardError& finding : now) {
      if (std::find(before.begin(), before.end(), finding) == before.end()) {
        any = true;
        print_line(context, "error", finding,
                   finding.where + ": " + finding.what + " (" + finding.code + ")");
      }
    }
    for (const pmd::CardEvent& event : take_events(source)) {
      print_line(context, "event", event_json(event), event_text(event));
    }
    before = std::move(now);
  } while (pace.next());
  return source.exit_code(any);
}

int errors(const GlobalOptions& context, Options& options) {
  std::string name;
  Source source;
  if (options.card.resolve(context, &name) != 0 || open_source(context, name, &source) != 0) {
    return kExitFailed;
  }
  return options.watch ? watch(context, source, options.pace) : once(context, source);
}

}  // namespace

void add_errors(CLI::App& app, GlobalOptions& context) {
  const auto [command, options] = add_command(
      app, context, "errors", "Show errors, decoded. Exits with 3 if there are any",
      "Rings that the card has stopped, error counters, and the standard error registers (error\n"
      "management, port error and status). The latter are read through the card's maintenance\n"
      "queue, so only while no program uses the card; nothing is reset or cleared.\n\n"
      "Examples\n  rio-tool errors\n  rio-tool --json errors --watch --interval 0.2",
      errors);
  options.card.add_to(command);
  command.add_flag("--watch", options.watch,
                   "Again and again: what is new, port-writes and other events");
  options.pace.add_to(command);
}

}  // namespace rio::tool
