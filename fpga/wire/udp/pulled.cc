#include "fpga/wire/udp/pulled.hpp"

#include <cstring>

namespace rio::wire::udp {
namespace {

constexpr size_t kSpareMax = 4;

}  // namespace

uint8_t* Pulled::add(uint32_t bytes) {
  Run run{{}, 0};
  if (!spare_.empty()) {
    run.bytes = std::move(spare_.back());
    spare_.pop_back();
  }
  run.bytes.resize(bytes);
  bytes_ += bytes;
  runs_.push_back(std::move(run));
  return runs_.back().bytes.data();
}

void Pulled::drop_last() {
  bytes_ -= runs_.back().bytes.size();
  runs_.pop_back();
}

void Pulled::free_passed(model::FrameWriter* writer) {
  while (!runs_.empty() && runs_.front().end != 0 && writer->passed(runs_.front().end & ~1u)) {
    bytes_ -= runs_.front().bytes.size();
    if (spare_.size() < kSpareMax) {
      spare_.push_back(std::move(runs_.front().bytes));
    }
    runs_.pop_front();
  }
}

const uint8_t* Pulled::find(uint64_t from, uint32_t bytes) const {
  for (const Run& run : runs_) {
    const auto begin = reinterpret_cast<uintptr_t>(run.bytes.data());
    if (from >= begin && from - begin <= run.bytes.size() &&
        bytes <= run.bytes.size() - (from - begin)) {
      return run.bytes.data() + (from - begin);
    }
  }
  return nullptr;
}

uint64_t Pulled::pull(std::span<const model::PullPiece> pieces) {
  uint64_t all = 0;
  for (const model::PullPiece& piece : pieces) {
    const uint8_t* const from = find(piece.from, piece.len_bytes);
    if (from == nullptr) {
      break;
    }
    std::memcpy(piece.to, from, piece.len_bytes);
    all += piece.len_bytes;
  }
  return all;
}

}  // namespace rio::wire::udp
