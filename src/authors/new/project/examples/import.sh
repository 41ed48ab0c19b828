terraform import sample_note.shopping shopping
