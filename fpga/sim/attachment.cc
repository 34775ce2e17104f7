#include "fpga/sim/attachment.hpp"

#include "fpga/sim/doorbell.hpp"
#include "fpga/sim/listen.hpp"
#include "fpga/sim/plain.hpp"

namespace rio::sim {

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

}  // namespace rio::sim
