#include "fpga/sim/attachment.hpp"

#include "fpga/sim/plain.hpp"

namespace rio::sim {

int attach(const CardSpec& spec, std::unique_ptr<Attachment>* out) {
  switch (spec.kind) {
    default:
      return attach_plain(spec, out);
  }
}

}  // namespace rio::sim
