#include "fpga/model/barrier/early_store.hpp"

namespace rio::model::barrier {

EarlyStore::~EarlyStore() {
  room_.give_back(taken_);
}

void EarlyStore::reserve(uint32_t wanted) {
  taken_ += wanted > taken_ ? room_.take(wanted - taken_) : 0;
  reserved_ = std::min(wanted, taken_);
  fit_room();
}

bool EarlyStore::store(uint32_t source, const Notice& notice) {
  const auto is_same = [&](const Early& early) {
    return early.source == source && early.notice.info() == notice.info();
  };
  if (std::any_of(stored_.begin(), stored_.end(), is_same)) {
    return true;
  }
  if (stored_.size() == taken_) {
    if (room_.take(1) == 0) {
      return false;
    }
    ++taken_;
  }
  stored_.push_back({source, notice});
  return true;
}

void EarlyStore::clear() {
  stored_.clear();
  fit_room();
}

/// Gives back to the room the places that are neither used nor reserved.
void EarlyStore::fit_room() {
  const uint32_t needed = std::max(reserved_, static_cast<uint32_t>(stored_.size()));
  if (taken_ > needed) {
    room_.give_back(taken_ - needed);
    taken_ = needed;
  }
}

}  // namespace rio::model::barrier
