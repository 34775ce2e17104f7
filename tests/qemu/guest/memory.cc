// The program's own memory, beside the driver's, and unmapped memory.
#include <sys/mman.h>

#include <cerrno>
#include <cstring>

#include "tests/qemu/guest/guest.hpp"

namespace rio::guest {
namespace {

using pmd::Status;

constexpr uint32_t kBytes = 256;  // one segment, one access of the card
/// No guest of 512 MiB has memory there, and no driver maps anything so high.
constexpr uint64_t kNowhere = 0x66'0000'0000;

/// Sends a message from a bus address. @return its status; -1: it has none.
int send_from(Station& card, uint64_t iova, uint32_t len_bytes, uint8_t mbox) {
  pmd::TxMessage out{};
  out.iova = iova;
  out.dest_id = card.dest_id();
  out.length_bytes = static_cast<uint16_t>(len_bytes);
  out.mbox = mbox;
  pmd::TxDone done{};
  return card.send(out, &done) ? static_cast<int>(done.status) : -1;
}

/// Sends a message from the program's memory; it arrives in the shared queue.
bool send_user(Station& card, uint8_t* from, uint32_t len_bytes) {
  fill(from, len_bytes, len_bytes);
  uint64_t iova = 0;
  pmd::RxMessage in{};
  const uint8_t* bytes = nullptr;
  if (card.card().iova(from, len_bytes, &iova) != 0 ||
      send_from(card, iova, len_bytes, 0) != static_cast<int>(Status::kOk) ||
      !card.receive(&in, &bytes) || !filled(bytes, len_bytes, len_bytes)) {
    fail("%u bytes of user memory did not come", len_bytes);
    return false;
  }
  return true;
}

/// Receives a message into the program's memory.
bool receive_user(Station& card, uint8_t* to) {
  pmd::DedicatedRxQueue* queue = nullptr;
  uint64_t iova = 0;
  if (card.card().open_dedicated(0, card.dest_id(), 1, &queue) != 0 ||
      card.card().iova(to, 4096, &iova) != 0) {
    return false;
  }
  const pmd::DedicatedEntry entry{iova, 1, 4096};
  fill(card.memory().va, 4096, 99);
  pmd::EntryDone done{};
  if (queue->post(&entry, 1) != 1 ||
      send_from(card, card.memory().iova, 4096, 1) != static_cast<int>(Status::kOk) ||
      !eventually([&] { return queue->reap(&done, 1) == 1; }) || done.status != Status::kOk ||
      !filled(to, 4096, 99)) {
    fail("nothing landed in user memory, status %d", static_cast<int>(done.status));
    return false;
  }
  return card.card().close_dedicated(0) == 0;
}

/// Pages of the program itself.
class UserPages {
 public:
  static constexpr size_t kLenBytes = size_t{2} << 20;

  explicit UserPages(bool huge) : name_(huge ? "hugepages" : "ordinary pages") {
    void* const va =
        mmap(nullptr, kLenBytes, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE | (huge ? MAP_HUGETLB : 0), -1, 0);
    va_ = va == MAP_FAILED ? nullptr : static_cast<uint8_t*>(va);
  }
  ~UserPages() { munmap(va_, kLenBytes); }
  UserPages(const UserPages&) = delete;
  UserPages& operator=(const UserPages&) = delete;

  /// Registers seven small pages, sends and receives there, and unregisters them. @param iova set
  /// to that of the first one.
  [[nodiscard]] bool use(Station& card, uint64_t* iova) {
    static constexpr size_t kPage = 4096;
    uint8_t* const first = va_ + 3 * kPage;
    if (va_ == nullptr || card.card().register_memory(first, 7 * kPage, nullptr) != 0 ||
        card.card().iova(first, kPage, iova) != 0) {
      fail("%s: there are none, or they cannot be registered", name_);
      return false;
    }
    if (!send_user(card, first + 24, 1000) || !send_user(card, first + kPage - 128, kBytes) ||
        !receive_user(card, first + 2 * kPage) ||
        card.card().unregister_memory(first, 7 * kPage) != 0) {
      fail("%s", name_);
      return false;
    }
    return true;
  }
  [[nodiscard]] void* va() const { return va_; }
  [[nodiscard]] const char* name() const { return name_; }

 private:
  const char* name_;
  uint8_t* va_;
};

}  // namespace

/// memory CARD: ordinary pages and hugepages of the program, registered, used, and unregistered;
/// afterwards the card must not reach them.
int user_memory(const Arguments& args) {
  Station card;
  if (!card.open(args[0])) {
    return 1;
  }
  for (const bool huge : {false, true}) {
    UserPages pages(huge);
    uint64_t iova = 0;
    if (!pages.use(card, &iova)) {
      return 1;
    }
    if (const int status = send_from(card, iova, kBytes, 0);
        status != static_cast<int>(Status::kHostReadFailed)) {
      return fail("the card still reads %s after they were unregistered: status %d", pages.name(),
                  status);
    }
    fact("faults", 1);
  }
  return card.close() == 0 ? 0 : 1;
}

/// memory-uio CARD: without an IOMMU only hugepages keep their place; other memory is refused.
int user_memory_uio(const Arguments& args) {
  Station card;
  UserPages ordinary(false);
  UserPages huge(true);
  uint64_t iova = 0;
  if (!card.open(args[0])) {
    return 1;
  }
  if (const int rc = card.card().register_memory(ordinary.va(), UserPages::kLenBytes, nullptr);
      rc != -ENOTSUP) {
    return fail("ordinary pages are registered: %d", rc);
  }
  return huge.use(card, &iova) && card.close() == 0 ? 0 : 1;
}

/// unmapped CARD: unmapped addresses. If the card reads one, the driver gets an error; if it
/// writes, only the IOMMU notices. Neither does harm: the card continues.
int unmapped(const Arguments& args) {
  static constexpr uint32_t kReads = 5;
  static constexpr uint32_t kWrites = 3;
  Station card;
  if (!card.open(args[0])) {
    return 1;
  }
  for (uint32_t i = 0; i < kReads; ++i) {
    if (const int status = send_from(card, kNowhere + (uint64_t{i} << 21), kBytes, 0);
        status != static_cast<int>(Status::kHostReadFailed)) {
      return fail("a message from an unmapped address: status %d", status);
    }
    fact("faults", 1);
  }
  pmd::DedicatedRxQueue* queue = nullptr;
  if (card.card().open_dedicated(0, card.dest_id(), 1, &queue) != 0) {
    return 1;
  }
  for (uint32_t i = 0; i < kWrites; ++i) {
    const pmd::DedicatedEntry entry{kNowhere + (uint64_t{i} << 22), i, kBytes};
    pmd::EntryDone done{};
    // A posted write: the card cannot notice, and reports success.
    if (queue->post(&entry, 1) != 1 ||
        send_from(card, card.memory().iova, kBytes, 1) != static_cast<int>(Status::kOk) ||
        !eventually([&] { return queue->reap(&done, 1) == 1; }) || done.status != Status::kOk) {
      return fail("a message to an unmapped address: status %d", static_cast<int>(done.status));
    }
    fact("faults", 1);
  }
  if (card.card().close_dedicated(0) != 0 || !card.pass(card, 1000, 3)) {
    return fail("the card does not go on after faults");
  }
  return card.close() == 0 ? 0 : 1;
}

}  // namespace rio::guest
