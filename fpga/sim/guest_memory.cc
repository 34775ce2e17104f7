#include "fpga/sim/guest_memory.hpp"

namespace rio::sim {

bool GuestMemory::find(uint64_t iova, model::HostWindow* out) {
  GuestRam::Run run;
  if (!ram_.find(iova, &run)) {
    return fault(iova);
  }
  *out = {iova, run.len_bytes, run.va};
  return true;
}

bool GuestMemory::fault(uint64_t iova) {
  if (fault_in_turn_ && iova == last_fault_) {
    return false;  // the same access, tried in another way
  }
  fault_in_turn_ = true;
  last_fault_ = iova;
  if (faults_++ == 0) {
    first_fault_ = iova;
  }
  return false;
}

}  // namespace rio::sim
