#include "fpga/cardsim/attach.hpp"

#include "fpga/cardsim/doorbell.hpp"
#include "fpga/cardsim/listen.hpp"
#include "fpga/cardsim/plain.hpp"

namespace rio::cardsim {

int attach(const CardSpec& spec, std::unique_ptr<Attachment>* out) {
  return std::visit([&](const auto& way) { return attach_by(way, spec, out); }, spec.way);
}

}  // namespace rio::cardsim
