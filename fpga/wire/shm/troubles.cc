#include "fpga/wire/shm/troubles.hpp"

namespace rio::wire::shm {

bool Troubles::tell(const std::string& text) {
  const std::lock_guard lock(mutex_);
  const bool is_new = told_.insert(text).second;
  if (is_new) {
    to_tell_.push_back(text);
  }
  return is_new;
}

bool Troubles::note(const base::Trouble& trouble) {
  {
    const std::lock_guard lock(mutex_);
    if (base::is_shortage(trouble.rc) && !told_shortages_.insert(trouble.rc).second) {
      return false;
    }
  }
  return tell("partners cannot be connected: " + base::why(trouble));
}

bool Troubles::next(std::string* text) {
  const std::lock_guard lock(mutex_);
  if (to_tell_.empty()) {
    return false;
  }
  *text = std::move(to_tell_.front());
  to_tell_.pop_front();
  return true;
}

void Troubles::set_unreachable(uint32_t id, uint32_t count, int rc) {
  const std::lock_guard lock(mutex_);
  for (uint32_t i = 0; i < count; ++i) {
    if (rc != 0) {
      unreachable_[id + i] = rc;
    } else {
      unreachable_.erase(id + i);
    }
  }
}

int Troubles::why_unreachable(uint32_t id) {
  const std::lock_guard lock(mutex_);
  const auto it = unreachable_.find(id);
  return it == unreachable_.end() ? 0 : it->second;
}

}  // namespace rio::wire::shm
