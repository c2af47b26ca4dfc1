//! Shape, signed strides and offset as pure integers: views, broadcasting, loop nests.
