#include "fpga/cardsim/guest_memory.hpp"

namespace rio::cardsim {

bool GuestMemory::find(uint64_t iova, model::HostWindow* out) {
  GuestRam::Run run;
  if (!ram_->find(iova, &run)) {
    return false;
  }
  *out = {iova, run.len_bytes, run.va};
  return true;
}

void GuestMemory::refused(uint64_t iova) {
  if (faults_++ == 0) {
    first_fault_ = iova;
  }
}

void GuestMemory::forget_guest() {
  changed();
  ram_ = std::make_unique<GuestRam>(ram_path_);
}

}  // namespace rio::cardsim
