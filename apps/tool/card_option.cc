#include "apps/tool/card_option.hpp"

#include <cerrno>

#include "pmd/api/card_name.hpp"
#include "pmd/api/pci.hpp"
#include "pmd/dev/names.hpp"
#include "pmd/dev/ring.hpp"

namespace rio::tool {
namespace {

// An emulated card looks at its control words every so many steps.
constexpr uint32_t kStepsToSettle = 1024;

}  // namespace

void CardOption::add_to(CLI::App& command) {
  command.add_option("--card", name_,
                     "Card: a PCI address, emu:loop, or another name of\n"
                     "docs/cards.md; may be left out where there is only one");
}

int CardOption::resolve_all(const GlobalOptions& context, std::vector<std::string>* names) const {
  if (!name_.empty()) {
    *names = {name_};
    return 0;
  }
  std::vector<pci::PciCard> cards;
  if (const int rc = pci::find_cards(context.paths, &cards); rc != 0) {
    return rc;
  }
  if (cards.empty()) {
    return complain("this machine has no card",
                    "name one with --card; an emulated one is --card emu:loop", -ENODEV);
  }
  names->clear();
  for (const pci::PciCard& card : cards) {
    names->push_back(card.address);
  }
  return 0;
}

int CardOption::resolve(const GlobalOptions& context, std::string* name) const {
  std::vector<std::string> names;
  if (const int rc = resolve_all(context, &names); rc != 0) {
    return rc;
  }
  if (names.size() > 1) {
    std::string list;
    for (const std::string& one : names) {
      list += (list.empty() ? "" : ", ") + one;
    }
    return complain("there are several cards: " + list, "name one, --card " + names[0], -EINVAL);
  }
  *name = names[0];
  return 0;
}

int CardOption::open_to_look(const GlobalOptions& context, LookedAtCard* out) const {
  std::string name;
  const int rc = resolve(context, &name);
  return rc != 0 ? rc : tool::open_to_look(context, name, out);
}

void let_work(pmd::Bus& bus) {
  const pmd::PollHook hook = bus.poll_hook(0);
  for (uint32_t i = 0; hook.fn != nullptr && i < kStepsToSettle; ++i) {
    hook();
  }
}

int open_to_look(const GlobalOptions& context, const std::string& name, LookedAtCard* out) {
  name::CardName parsed;
  if (const int rc = parse_card_name(name, &parsed); rc != 0) {
    return rc;
  }
  LookedAtCard looked;
  const auto* const on_pci = std::get_if<name::Pci>(&parsed.kind);
  if (const int rc = on_pci != nullptr ? pci::map_bar(on_pci->address, context.paths, &looked.bus)
                                       : open_bus(parsed, context.paths, &looked.bus);
      rc != 0) {
    return rc;
  }
  looked.let_work();
  if (const int rc = pmd::Card::look(*looked.bus, &looked.card); rc != 0) {
    return rc;
  }
  *out = std::move(looked);
  return 0;
}

int find_user(pmd::Card& card, std::string* user) {
  user->clear();
  for (uint32_t qp = 0; qp < card.caps().queue_pairs; ++qp) {
    for (uint32_t ring = 0; card.blocks().has_qp(qp) && ring < regs::kRingsPerQp; ++ring) {
      pmd::Mmio bar = card.bus().bar();
      const int busy = pmd::Ring::busy(bar, qp, ring);
      if (busy < 0) {
        return complain(card.bus().name() + ": the card is gone", "check slot, link and power",
                        busy);
      }
      if (busy != 0) {
        *user = "queue pair " + std::to_string(qp) + ", ring " + pmd::ring_name(ring);
        return 0;
      }
    }
  }
  return 0;
}

int refuse_used(const GlobalOptions& context, const std::string& name, const std::string& remedy) {
  LookedAtCard looked;
  std::string user;
  int rc = open_to_look(context, name, &looked);
  rc = rc != 0 ? rc : find_user(*looked.card, &user);
  return rc != 0 || user.empty()
             ? rc
             : complain(looked.bus->name() + " is in use: " + user + " runs",
                        "end the program that uses it; if none does any more, " + remedy, -EBUSY);
}

int open_card_bus(const GlobalOptions& context, const std::string& name,
                  std::unique_ptr<pmd::Bus>* out) {
  name::CardName parsed;
  const int rc = parse_card_name(name, &parsed);
  return rc != 0 ? rc : open_bus(parsed, context.paths, out);
}

int open_endpoint(const GlobalOptions& context, const CardOption& card,
                  const EndpointConfig& config, std::unique_ptr<Endpoint>* out) {
  std::string name;
  int rc = card.resolve(context, &name);
  if (rc != 0) {
    return rc;
  }
  if (name::CardName parsed;
      parse_card_name(name, &parsed) == 0 && std::holds_alternative<name::Pci>(parsed.kind)) {
    rc = refuse_used(context, name, "rio-tool reset --flr " + name);
  }
  std::unique_ptr<pmd::Bus> bus;
  rc = rc != 0 ? rc : open_card_bus(context, name, &bus);
  return rc != 0 ? rc : Endpoint::open(std::move(bus), config, out);
}

}  // namespace rio::tool
