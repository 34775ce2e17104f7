#include "pmd/net/cutter.hpp"

#include <algorithm>

namespace rio::pmd {

void Cutter::skip_empty() {
  while (segment_ != nullptr && at_ == segment_->data_len) {
    segment_ = segment_->next;
    at_ = 0;
  }
}

void Cutter::pass(uint32_t bytes) {
  left_ -= std::min(left_, bytes);
  while (bytes != 0 && segment_ != nullptr) {
    const uint32_t here = std::min<uint32_t>(bytes, segment_->data_len - at_);
    at_ += here;
    bytes -= here;
    skip_empty();
  }
}

/// Takes the first bytes, up to where the rest can stay in place; they will be copied.
void Cutter::take_head(Piece* piece) {
  *piece = {};
  piece->bytes = std::min(left_, kHeadBytesMin);
  pass(piece->bytes);
  if (left_ != 0 && segment_ != nullptr && at_ != 0) {
    const auto more = static_cast<uint32_t>(
        std::min<uint64_t>({-iova() & misaligned_, uint64_t{segment_->data_len} - at_, left_}));
    piece->bytes += more;
    pass(more);
  }
}

bool Cutter::next(Piece* piece) {
  *piece = {};
  skip_empty();
  if (left_ == 0 || segment_ == nullptr) {
    return false;
  }
  const Cutter before = *this;
  if (copied_ || (iova() & misaligned_) != 0) {
    const uint32_t reach = copied_ ? left_ : std::min<uint32_t>(left_, segment_->data_len - at_);
    piece->bytes = std::min(reach, kItemBytesMax);
    pass(piece->bytes);
  } else {
    gather(piece);
  }
  if (is_first_ && piece->bytes < kHeadBytesMin && left_ != 0) {
    *this = before;
    take_head(piece);
  }
  is_first_ = false;
  return true;
}

void Cutter::gather(Piece* piece) {
  bool more = true;
  while (more) {
    const uint32_t bytes = std::min(
        {static_cast<uint32_t>(segment_->data_len) - at_, kItemBytesMax - piece->bytes, left_});
    piece->iova[piece->places] = iova();
    piece->length_bytes[piece->places++] = static_cast<uint16_t>(bytes);
    piece->bytes += bytes;
    pass(bytes);
    more = bytes % 8 == 0 && piece->places != Piece::kPlacesMax && piece->bytes != kItemBytesMax &&
           left_ != 0 && segment_ != nullptr && (iova() & misaligned_) == 0;
  }
}

CutSize size_of(Cutter cutter) {
  CutSize size;
  Piece piece;
  while (cutter.next(&piece)) {
    ++size.messages;
    size.entries += piece.places == 0 ? 1 : 2;
    size.in_place += piece.places == 0 ? 0 : 1;
  }
  size.entries = size.in_place == 0 ? size.entries : with_skips(size.entries);
  return size;
}

}  // namespace rio::pmd
