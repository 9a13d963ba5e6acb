"""Where particles are: structures of atoms, their files, and perfect crystals."""
