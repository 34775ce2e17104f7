#include "pmd/api/card_name.hpp"

#include "base/log.hpp"
#include "fpga/name/parse.hpp"
#include "fpga/name/rails.hpp"
#include "pmd/bus/emu/emu_bus.hpp"
#include "pmd/bus/emu/sim_bus.hpp"
#include "pmd/bus/vfio/vfio_bus.hpp"

namespace rio {
int parse_card_name(const std::string& text, name::CardName* out) {
  std::string error;
  const int rc = name::parse(name::Place::kProgram, text, {}, out, &error);
  if (rc != 0) {
    base::log_error("card \"%s\": %s", text.c_str(), error.c_str());
  }
  return rc;
}

int card_names(const std::string& text, std::vector<std::string>* out) {
  std::string error;
  std::vector<name::CardName> cards;
  const int rc = name::parse_cards(text, out, &cards, &error);
  if (rc != 0) {
    base::log_error("card \"%s\": %s", text.c_str(), error.c_str());
  }
  return rc;
}

int open_bus(const name::CardName& card, const pmd::vfio::PciPaths& paths,
             std::unique_ptr<pmd::Bus>* out) {
  if (pmd::EmuConfig config; pmd::emu_config(card, &config)) {
    std::unique_ptr<pmd::EmuBus> bus;
    const int rc = pmd::EmuBus::create(config, nullptr, &bus);
    if (rc == 0) {
      *out = std::move(bus);
    }
    return rc;
  }
  if (const auto* const sim = std::get_if<name::Sim>(&card.kind)) {
    return pmd::open_sim_bus(*sim, out);
  }
  const auto& pci = std::get<name::Pci>(card.kind);  // a program's card is of no other kind
  return pmd::vfio::open_vfio_bus(pci, paths, out);
}

int open_bus(const std::string& name, std::unique_ptr<pmd::Bus>* out) {
  name::CardName parsed;
  const int rc = parse_card_name(name, &parsed);
  return rc != 0 ? rc : open_bus(parsed, {}, out);
}

}  // namespace rio
