#include "fpga/cardsim/attachment.hpp"

#include "fpga/cardsim/doorbell.hpp"
#include "fpga/cardsim/listen.hpp"
#include "fpga/cardsim/plain.hpp"

namespace rio::cardsim {

int attach(const CardSpec& spec, std::unique_ptr<Attachment>* out) {
  switch (spec.kind) {
    case Kind::kDoorbell:
      return attach_doorbell(spec, out);
    case Kind::kListen:
      return attach_listen(spec, out);
    default:
      return attach_plain(spec, out);
  }
}

}  // namespace rio::cardsim
