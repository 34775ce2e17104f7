/// @file
/// --card NAME, and the ways to open what it names.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "apps/tool/global_options.hpp"
#include "pmd/api/riopmd.hpp"
#include "pmd/bus/bus.hpp"
#include "pmd/dev/card.hpp"

namespace rio::tool {

struct LookedAtCard;

/// Let an emulated card, which works only while it is polled, do what it has to. Nothing on PCI.
void let_work(pmd::Bus& bus);

/// The option. It outlives the parsing of the command line. One thread, as all here.
class CardOption {
 public:
  /// Give `command` the option.
  void add_to(CLI::App& command);
  /// Find the card: the one that was named, else the only one of this machine.
  /// @param name as rio::parse_card_name() takes it. @return 0; -ENODEV (there is none), -EINVAL
  /// (there are several; the line on stderr lists them), or what find_cards() says. Said on stderr.
  [[nodiscard]] int resolve(const GlobalOptions& context, std::string* name) const;
  /// The card that was named, else all of this machine.
  /// @return 0; -ENODEV (there is none), or what find_cards() says. Said on stderr.
  [[nodiscard]] int resolve_all(const GlobalOptions& context,
                                std::vector<std::string>* names) const;
  /// Resolve, then open_to_look(). @return 0 or -errno, said on stderr.
  [[nodiscard]] int open_to_look(const GlobalOptions& context, LookedAtCard* out) const;

 private:
  std::string name_;
};

/// A card that is only looked at. The bus outlives the card.
struct LookedAtCard {
  std::unique_ptr<pmd::Bus> bus;
  std::unique_ptr<pmd::Card> card;

  /// As tool::let_work().
  void let_work() const { tool::let_work(*bus); }
};

/// Open a card to look at its registers: no reset, nothing is owned, works beside a program that
/// uses it. An emulated card is made, and is in the state of a card that was just switched on.
/// @return 0 or -errno, said on stderr.
[[nodiscard]] int open_to_look(const GlobalOptions& context, const std::string& name,
                               LookedAtCard* out);

/// Find a ring that runs, so that the card is in use. @param user the first such ring, as "queue
/// pair 0, ring tx", or empty. @return 0, -ENODEV (gone), said on stderr.
[[nodiscard]] int find_user(pmd::Card& card, std::string* user);

/// Refuse a card whose rings run: a reset would take them from the program that has them.
/// @param remedy for rings that a dead program has left, as "give --force". @return 0; -EBUSY, or
/// as open_to_look(), said on stderr.
[[nodiscard]] int refuse_used(const GlobalOptions& context, const std::string& name,
                              const std::string& remedy);

/// Open the bus of a card with all it can do (memory, interrupts). @return as rio::open_bus(), said
/// on stderr.
[[nodiscard]] int open_card_bus(const GlobalOptions& context, const std::string& name,
                                std::unique_ptr<pmd::Bus>* out);

/// Open the card of an option for a command of its own, which resets it. A card on PCI whose rings
/// run is refused; any other card has one user anyway.
/// @return 0 or -errno, said on stderr.
[[nodiscard]] int open_endpoint(const GlobalOptions& context, const CardOption& card,
                                const EndpointConfig& config, std::unique_ptr<Endpoint>* out);

}  // namespace rio::tool
