#include "pmd/bus/eal/eal_memory.hpp"

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_memory.h>

#include <algorithm>
#include <atomic>
#include <cerrno>

#include "base/log.hpp"

namespace rio::pmd {

int MemsegView::create(std::unique_ptr<MemsegView>* out) {
  static std::atomic<uint32_t> count{0};
  std::unique_ptr<MemsegView> view(new MemsegView);
  // relaxed: the number only has to differ
  view->callback_name_ =
      "rio_view_" + std::to_string(count.fetch_add(1, std::memory_order_relaxed));
  const auto callback = [](rte_mem_event event, const void* addr, size_t len, void* self) {
    on_event(static_cast<int>(event), addr, len, self);
  };
  // First the callback, then the walk: a segment that both see is entered twice, which is harmless.
  if (rte_mem_event_callback_register(view->callback_name_.c_str(), callback, view.get()) == 0) {
    view->registered_ = true;
  } else if (rte_errno !=
             ENOTSUP) {  // not supported: memory never changes (--legacy-mem, --no-huge)
    const int error = rte_errno;
    base::log_error("EAL takes no memory callback: %s", rte_strerror(error));
    return -error;
  }
  if (rte_memseg_walk(on_segment, view.get()) < 0) {
    return -ENOMEM;
  }
  *out = std::move(view);
  return 0;
}

MemsegView::~MemsegView() {
  if (registered_) {
    rte_mem_event_callback_unregister(callback_name_.c_str(), this);
  }
}

bool MemsegView::find(uint64_t iova, EmuWindow* out) {
  const std::lock_guard guard(mutex_);
  auto it = windows_.upper_bound(iova);
  if (it == windows_.begin() || !(--it)->second.holds(iova, 1)) {
    return false;
  }
  *out = it->second;
  return true;
}

int MemsegView::add(void* va, uint64_t iova, size_t len_bytes) {
  if (len_bytes == 0 || iova + len_bytes < iova) {
    return -EINVAL;
  }
  const std::lock_guard guard(mutex_);
  const auto next = windows_.lower_bound(iova);
  if ((next != windows_.end() && next->first - iova < len_bytes) ||
      (next != windows_.begin() && std::prev(next)->second.holds(iova, 1))) {
    return -EEXIST;
  }
  add_locked(static_cast<uint8_t*>(va), iova, len_bytes);
  return 0;
}

int MemsegView::remove(void* va, size_t len_bytes) {
  const std::lock_guard guard(mutex_);
  return cut_locked(static_cast<uint8_t*>(va), len_bytes) ? 0 : -ENOENT;
}

int MemsegView::runs(void* va, size_t len_bytes, std::vector<IovaRun>* out) {
  auto* const first = static_cast<uint8_t*>(va);
  auto* const last = first + len_bytes;
  std::vector<IovaRun> found;
  {
    const std::lock_guard guard(mutex_);
    for (const auto& [iova, window] : windows_) {
      uint8_t* const from = std::max(first, window.va);
      uint8_t* const to = std::min(last, window.va + window.len_bytes);
      if (from < to) {
        found.push_back(
            {from, iova + static_cast<uint64_t>(from - window.va), static_cast<size_t>(to - from)});
      }
    }
  }
  std::sort(found.begin(), found.end(),
            [](const IovaRun& a, const IovaRun& b) { return a.va < b.va; });
  const uint8_t* reached = first;
  for (const IovaRun& run : found) {
    if (run.va != reached) {
      return -ENOENT;
    }
    reached += run.len_bytes;
  }
  if (reached != last) {
    return -ENOENT;
  }
  *out = std::move(found);
  return 0;
}

int MemsegView::on_segment(const rte_memseg_list* list, const rte_memseg* segment, void* self) {
  if ((list->external != 0 && list->heap == 0) || segment->iova == RTE_BAD_IOVA) {
    return 0;
  }
  auto* const view = static_cast<MemsegView*>(self);
  const std::lock_guard guard(view->mutex_);
  view->add_locked(static_cast<uint8_t*>(segment->addr), segment->iova, segment->len);
  return 0;
}

// Called under EAL's write lock: it may only call functions that take no EAL lock.
void MemsegView::on_event(int event, const void* addr, size_t len_bytes, void* self) {
  auto* const view = static_cast<MemsegView*>(self);
  const auto* const first = static_cast<const uint8_t*>(addr);
  const std::lock_guard guard(view->mutex_);
  if (event == RTE_MEM_EVENT_FREE) {
    (void)view->cut_locked(first, len_bytes);
    return;
  }
  const rte_memseg_list* const list = rte_mem_virt2memseg_list(addr);
  for (size_t done = 0; list != nullptr && done < len_bytes;) {
    const rte_memseg* const segment = rte_mem_virt2memseg(first + done, list);
    if (segment == nullptr || segment->len == 0) {
      return;
    }
    if (segment->iova != RTE_BAD_IOVA) {
      view->add_locked(static_cast<uint8_t*>(segment->addr), segment->iova, segment->len);
    }
    done += segment->len;
  }
}

void MemsegView::add_locked(uint8_t* va, uint64_t iova, uint64_t len_bytes) {
  EmuWindow window{.iova = iova, .len_bytes = len_bytes, .va = va};
  const auto next = windows_.lower_bound(iova);
  if (next != windows_.end() && next->first == iova) {
    return;  // seen by callback and walk
  }
  if (next != windows_.begin()) {
    const auto before = std::prev(next);
    const EmuWindow& w = before->second;
    if (w.holds(iova, len_bytes)) {
      return;
    }
    if (w.iova + w.len_bytes == iova && w.va + w.len_bytes == va) {
      window = {.iova = w.iova, .len_bytes = w.len_bytes + len_bytes, .va = w.va};
      windows_.erase(before);
    }
  }
  if (next != windows_.end() && next->first == window.iova + window.len_bytes &&
      next->second.va == window.va + window.len_bytes) {
    window.len_bytes += next->second.len_bytes;
    windows_.erase(next);
  }
  windows_[window.iova] = window;
}

bool MemsegView::cut_locked(const uint8_t* va, uint64_t len_bytes) {
  bool any = false;
  for (auto it = windows_.begin(); it != windows_.end();) {
    const EmuWindow w = it->second;
    const uint8_t* const from = std::max<const uint8_t*>(va, w.va);
    const uint8_t* const to = std::min<const uint8_t*>(va + len_bytes, w.va + w.len_bytes);
    if (from >= to) {
      ++it;
      continue;
    }
    any = true;
    it = windows_.erase(it);
    // The parts that stay lie before `it`.
    const auto head = static_cast<uint64_t>(from - w.va);
    const auto end = static_cast<uint64_t>(to - w.va);
    if (head != 0) {
      windows_[w.iova] = {.iova = w.iova, .len_bytes = head, .va = w.va};
    }
    if (end != w.len_bytes) {
      windows_[w.iova + end] = {
          .iova = w.iova + end, .len_bytes = w.len_bytes - end, .va = w.va + end};
    }
  }
  if (any) {
    changed();
  }
  return any;
}

int EalMemory::create(std::string tag, std::unique_ptr<EalMemory>* out) {
  std::unique_ptr<EalMemory> memory(new EalMemory(std::move(tag)));
  if (const int rc = MemsegView::create(&memory->view_); rc != 0) {
    return rc;
  }
  *out = std::move(memory);
  return 0;
}

int EalMemory::map(void* va, size_t len_bytes, std::vector<IovaRun>* runs) {
  if (va == nullptr || len_bytes == 0) {
    return -EINVAL;
  }
  if (mapped_.contains(va)) {
    return -EEXIST;
  }
  if (view_->runs(va, len_bytes, runs) == 0) {
    mapped_[va] = {len_bytes, false};
    return 0;
  }
  const rte_iova_t known =
      rte_mem_virt2memseg(va, nullptr) != nullptr ? rte_mem_virt2iova(va) : RTE_BAD_IOVA;
  const uint64_t iova = known != RTE_BAD_IOVA ? known : reinterpret_cast<uint64_t>(va);
  if (const int rc = map_at(va, iova, len_bytes); rc != 0) {
    return rc;
  }
  *runs = {{va, iova, len_bytes}};
  return 0;
}

int EalMemory::map_at(void* va, uint64_t iova, size_t len_bytes) {
  if (rte_eal_process_type() != RTE_PROC_PRIMARY) {
    base::log_error(
        "%p belongs to this process alone, but the emulated card is in the primary: use memory "
        "of EAL (rte_malloc, mempool)",
        va);
    return -ENOTSUP;
  }
  if (const int rc = view_->add(va, iova, len_bytes); rc != 0) {
    return rc;
  }
  mapped_[va] = {len_bytes, true};
  return 0;
}

int EalMemory::unmap(void* va, size_t len_bytes) {
  const auto it = mapped_.find(va);
  if (it == mapped_.end() || it->second.first != len_bytes) {
    return -ENOENT;
  }
  const bool told = it->second.second;
  mapped_.erase(it);
  return told ? view_->remove(va, len_bytes) : 0;
}

}  // namespace rio::pmd
