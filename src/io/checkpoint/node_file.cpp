#include "io/checkpoint/node_file.hpp"

#include <cstring>
#include <filesystem>

#include "core/copy_rows.hpp"
#include "core/error.hpp"
#include "io/checkpoint/checkpoint_files.hpp"
#include "io/checkpoint/file_index.hpp"
#include "io/posix_file.hpp"

namespace t3d {
NodeFile::NodeFile(const std::string& folder, const std::string& name, const SavePlan& plan,
                   const CheckpointState& state)
    : folder_(folder),
      file_(H5File::create(folder + "/" + name)),
      plan_(plan),
      index_(plan.index()) {
  state_.run_id = state.run_id;
  state_.step = state.step;
  entry_.name = name;
}

void NodeFile::write(const Strip& strip, const void* data) {
  const PlanTensor& tensor = plan_.tensor_of(strip);
  ManifestPiece& piece = index_.at(tensor.name)[plan_.piece_of(strip).number];
  const bool vector = tensor.shape.vector;
  const hid_t type = h5_type(tensor.shape.dtype);
  if (strip.box.row0 == piece.box.row0) {
    const std::string name = dataset_name(tensor.name, piece.box);
    dataset_ = file_.create_contiguous(name, type, piece.box.rows, piece.box.cols, vector);
    piece.offset = file_.offset_of(dataset_);
    piece.first_crc = std::ssize(table_);
    crcs_ = BlockCrcs(dataset_seed(state_, name));
  }
  crcs_.add(data, strip.box.count() * size_of(tensor.shape.dtype));
  file_.write_rows(dataset_, type, strip.box.row0 - piece.box.row0, strip.box.rows, strip.box.cols,
                   vector, data);
  if (strip.box.row1() == piece.box.row1()) end_piece();
}

void NodeFile::end_piece() {
  dataset_.close();
  const auto& crcs = crcs_.finish();
  table_.insert(table_.end(), crcs.begin(), crcs.end());
}

void NodeFile::write_table() {
  entry_.table_count = std::ssize(table_);
  entry_.table_crc = crc32c(table_.data(), table_.size() * sizeof table_[0]);
  H5Id dataset = file_.create_contiguous(kCrcTableName, H5T_STD_U32LE, 1, entry_.table_count, true);
  entry_.table_offset = file_.offset_of(dataset);
  file_.write_rows(dataset, H5T_STD_U32LE, 0, 1, entry_.table_count, true, table_.data());
  dataset.close();
}

void NodeFile::write_index() {
  const std::string text = format_index(entry_.name, index_);
  entry_.index = index_name_of(entry_.name);
  entry_.index_bytes = std::ssize(text);
  entry_.index_crc = crc32c(text);
  write_text_durably(folder_ + "/" + entry_.index, text);
}

Fragment NodeFile::finish(bool verify) {
  write_table();
  file_.close();
  const std::string path = folder_ + "/" + entry_.name;
  sync_path(path);
  entry_.bytes = file_size(path);
  write_index();
  Fragment fragment = fragment_of(plan_.shapes(), index_);
  fragment.files.push_back(entry_);
  if (!verify) return fragment;
  const Manifest manifest = manifest_of(state_, fragment);
  fragment.files.front().crc =
      verify_node_file(folder_, manifest, 0, read_index(folder_, manifest, 0));
  H5File again = H5File::open(path);
  if (!again.has(kCrcTableName)) throw_error(ExitCode::io, "{} cannot be read again", path);
  again.close();
  return fragment;
}

std::vector<index_t> RoundBuffers::bytes_of(const std::vector<Strip>& round, int ranks) const {
  std::vector<index_t> bytes(static_cast<std::size_t>(ranks));
  for (const Strip& strip : round)
    for (const Copy& copy : plan_.copies_of(strip))
      bytes[static_cast<std::size_t>(copy.holding->rank)] +=
          copy.piece.count() * plan_.element_bytes(strip);
  return bytes;
}

void RoundBuffers::reserve(int ranks) {
  if (rank_ == 0) received_.resize(static_cast<std::size_t>(ranks));
  for (const auto& round : plan_.rounds()) {
    const std::vector<index_t> bytes = bytes_of(round, ranks);
    if (rank_ != 0)
      packed_.reserve(static_cast<std::size_t>(bytes[static_cast<std::size_t>(rank_)]));
    for (std::size_t rank = 1; rank < received_.size(); ++rank)
      received_[rank].reserve(static_cast<std::size_t>(bytes[rank]));
  }
}

void RoundBuffers::gather(Communicator& group, const std::vector<Strip>& round) {
  std::vector<Exchange> messages;
  const auto view = [](std::vector<std::byte>& bytes) {
    return TensorView(bytes.data(), DType::i32, 1, std::ssize(bytes) / 4);
  };
  if (rank_ != 0) {
    pack(round);
    if (!packed_.empty()) messages.push_back({0, view(packed_), {}});
  } else {
    const std::vector<index_t> bytes = bytes_of(round, group.size());
    for (int rank = 1; rank < group.size(); ++rank) {
      auto& buffer = received_[static_cast<std::size_t>(rank)];
      buffer.resize(static_cast<std::size_t>(bytes[static_cast<std::size_t>(rank)]));
      if (!buffer.empty()) messages.push_back({rank, {}, view(buffer)});
    }
  }
  group.exchange(std::move(messages)).wait_host();
}

void RoundBuffers::pack(const std::vector<Strip>& round) {
  packed_.clear();
  for (const Strip& strip : round) {
    const index_t each = plan_.element_bytes(strip);
    for (const Copy& copy : plan_.copies_of(strip)) {
      if (copy.holding->rank != rank_) continue;
      const RoutePiece& piece = copy.piece;
      const std::size_t at = packed_.size();
      packed_.resize(at + static_cast<std::size_t>(piece.count() * each));
      copy_rows(packed_.data() + at, piece.cols * each, own_memory(copy, each),
                piece.from_ld * each, piece.rows, piece.cols * each);
    }
  }
}

void RoundBuffers::write(const std::vector<Strip>& round, NodeFile& file) {
  std::vector<index_t> taken(received_.size());
  for (const Strip& strip : round) {
    const index_t each = plan_.element_bytes(strip);
    const auto copies = plan_.copies_of(strip);
    const bool direct = copies.size() == 1 && copies[0].holding->rank == 0 &&
                        copies[0].piece.from_ld == strip.box.cols;
    if (direct) {  // already lies in memory as it will in the file
      file.write(strip, own_memory(copies[0], each));
      continue;
    }
    strip_.resize(static_cast<std::size_t>(strip.box.count() * each));
    for (const Copy& copy : copies) {
      const RoutePiece& piece = copy.piece;
      const auto rank = static_cast<std::size_t>(copy.holding->rank);
      const bool own = rank == 0;
      const std::byte* from = own ? own_memory(copy, each) : received_[rank].data() + taken[rank];
      if (!own) taken[rank] += piece.count() * each;
      copy_rows(strip_.data() + piece.to_offset * each, piece.to_ld * each, from,
                (own ? piece.from_ld : piece.cols) * each, piece.rows, piece.cols * each);
    }
    file.write(strip, strip_.data());
  }
}

}  // namespace t3d
