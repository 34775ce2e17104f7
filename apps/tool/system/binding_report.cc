#include "apps/tool/system/binding_report.hpp"

namespace rio::tool {

void BindingReport::add(const pci::PciCard& card, const std::string& after) {
  const auto shown = [](const std::string& driver) {
    return driver.empty() ? std::string("no driver") : driver;
  };
  cards_.push_back({{"address", card.address}, {"before", card.driver}, {"after", after}});
  text_.append(card.address).append(": ").append(shown(card.driver));
  text_.append(" -> ").append(shown(after)).append("\n");
}

void BindingReport::print(const GlobalOptions& context, const SysfsWriter& writer,
                          int exit_code) const {
  print_result(context,
               {{"cards", cards_},
                {"writes", writer.data()},
                {"done", exit_code == kExitOk && !context.dry_run}},
               context.dry_run ? writer.text() : text_);
}

}  // namespace rio::tool
